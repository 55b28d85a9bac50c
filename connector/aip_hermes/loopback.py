"""Two questions about a host: whether dialling it stays on this machine, and whether binding it does.

They differ in doubt: a proxy must not see what stays here, and others must not be let in unseen. Nothing is resolved.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

__all__ = ["bound_for_this_machine_only", "dials_this_machine"]


def dials_this_machine(host: str) -> bool:
    """Whether a connection to `host` (without brackets) can only reach this machine; no proxy may see it.

    `localhost` and the names below it, loopback addresses, and unspecified ones, which connect to this machine.
    """
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and (address.is_loopback or address.is_unspecified)


def bound_for_this_machine_only(host: str) -> bool:
    """Whether a bind to `host` (without brackets) is reachable from this machine only.

    No name but `localhost` is: it may resolve to anything. An unspecified address is not: it is every address.
    """
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address, an IPv4 one where it is written inside an IPv6 one; None for a name."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
