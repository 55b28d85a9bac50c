"""Where an endpoint may listen, and with what key."""

from __future__ import annotations

import ipaddress
from typing import Final

from aip_hermes.secret import Secret

__all__ = ["MIN_KEY_CHARS", "MIN_OPEN_KEY_CHARS", "UnsafeBind", "UnsafeKey", "check_bind", "check_key_strength"]

MIN_KEY_CHARS: Final = 16
MIN_OPEN_KEY_CHARS: Final = 32
_MIN_DISTINCT: Final = 5
_MIN_OPEN_DISTINCT: Final = 10
_PLACEHOLDERS: Final = (
    "changeme",
    "change-me",
    "change_me",
    "replaceme",
    "placeholder",
    "your-api-key",
    "your_api_key",
)


class UnsafeKey(ValueError):
    """A key that can be guessed; the text names the rule, never the key."""


class UnsafeBind(ValueError):
    """An address that others reach, with a key that is too weak for that."""


def check_key_strength(key: Secret) -> None:
    """Refuse keys under 16 characters, of few different characters, and known placeholders. Raises UnsafeKey."""
    text = key.reveal()
    if len(text) < MIN_KEY_CHARS:
        raise UnsafeKey(f"an endpoint key has at least {MIN_KEY_CHARS} characters")
    if len(set(text)) < _MIN_DISTINCT or any(text.lower().startswith(word) for word in _PLACEHOLDERS):
        raise UnsafeKey("this endpoint key is a placeholder; make a random one")


def check_bind(host: str, key: Secret) -> None:
    """Refuse an address beyond this machine unless the key is strong: 32 characters, ten of them different.

    host: an address or a name. Only `localhost` and loopback addresses count as this machine, whatever a name resolves
    to.
    Raises UnsafeKey, UnsafeBind.
    """
    check_key_strength(key)
    text = key.reveal()
    if not _is_loopback(host) and (len(text) < MIN_OPEN_KEY_CHARS or len(set(text)) < _MIN_OPEN_DISTINCT):
        raise UnsafeBind(
            f"{host} is reachable from other machines; that needs a random key of {MIN_OPEN_KEY_CHARS} characters"
        )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
