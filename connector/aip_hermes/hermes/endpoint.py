"""A configured Hermes endpoint and the rules that its values keep."""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass, field
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.ids import EndpointId, IdentityError, TenantId
from aip_hermes.loopback import dials_this_machine
from aip_hermes.secret import Secret

__all__ = ["Endpoint", "EndpointInvalid", "OnClosed"]

OnClosed = Literal["forward", "refuse"]

_RAW_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_QUAD: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_MAX_TURN_S: Final = 86_400.0


class EndpointInvalid(ValueError):
    """A value that an endpoint can't have; the text names the member and the rule, never a credential."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One Hermes API server.

    base_url: an origin, `http://host[:port]/`. key: without one only `health` works. tenant_id: the only tenant that
    may use it; None: any. turn_timeout_s: how long one turn of the agent may take. on_closed: whether a turn on a
    session that somebody closed is forwarded, as Hermes itself does, or refused (design D14). approval: who decides
    about what is done here; None: as every row says.
    Raises EndpointInvalid. Source: connector contract §2.
    """

    id: EndpointId
    base_url: str
    key: Secret | None = field(default=None, repr=False)
    tenant_id: TenantId | None = None
    display_name: str | None = None
    turn_timeout_s: float = 900.0
    on_closed: OnClosed = "forward"
    approval: ApprovalTerms | None = None

    def __post_init__(self) -> None:
        _check_origin(self.base_url)
        if self.display_name is not None:
            _check_display_name(self.display_name)
        if not (math.isfinite(self.turn_timeout_s) and 0 < self.turn_timeout_s <= _MAX_TURN_S):
            raise EndpointInvalid(f"turn_timeout_s is more than 0 and at most {_MAX_TURN_S:.0f} seconds")
        if self.on_closed not in ("forward", "refuse"):
            raise EndpointInvalid("on_closed is `forward` or `refuse`")

    @classmethod
    def check(
        cls,
        *,
        id: str,
        base_url: str,
        key: Secret | None = None,
        tenant_id: str | None = None,
        display_name: str | None = None,
        turn_timeout_s: float = 900.0,
        on_closed: OnClosed = "forward",
        approval: ApprovalTerms | None = None,
    ) -> Self:
        """Make an endpoint of configured text: the id is trimmed and lower-cased, the origin gets its final slash."""
        name = id.strip()
        if not _RAW_ID.fullmatch(name):
            raise EndpointInvalid("an endpoint id is 1–128 ASCII letters, digits, `-` or `_`")
        try:
            tenant = None if tenant_id is None else TenantId(tenant_id)
        except IdentityError as exc:
            raise EndpointInvalid(f"endpoint {name.lower()}: {exc}") from None
        try:
            return cls(
                id=EndpointId(name.lower()),
                base_url=base_url if base_url.endswith("/") else base_url + "/",
                key=key,
                tenant_id=tenant,
                display_name=display_name,
                turn_timeout_s=turn_timeout_s,
                on_closed=on_closed,
                approval=approval,
            )
        except EndpointInvalid as exc:
            raise EndpointInvalid(f"endpoint {name.lower()}: {exc}") from None

    @property
    def authority(self) -> str:
        """Host and port of the origin, as configured."""
        return urlsplit(self.base_url).netloc

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine by its very name; nothing is resolved."""
        return dials_this_machine(urlsplit(self.base_url).hostname or "")


def _check_origin(base_url: str) -> None:
    if any(c.isspace() or not c.isprintable() for c in base_url):
        raise EndpointInvalid("base_url has no white space and no control characters")
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018 – reading it checks it
    except ValueError:
        raise EndpointInvalid("base_url is no URL") from None
    if parts.scheme not in ("http", "https"):
        raise EndpointInvalid("base_url starts with http:// or https://")
    if not _is_host(parts.hostname or ""):
        raise EndpointInvalid(
            "base_url names a host: an address, or a name of ASCII letters, digits, `-`, `_` and dots"
        )
    if "@" in parts.netloc:
        raise EndpointInvalid("base_url holds no user name and no password; put the key into a file")
    if parts.path != "/" or "?" in base_url or "#" in base_url:
        raise EndpointInvalid("base_url is an origin: no path, query or fragment behind host and port")


def _is_host(host: str) -> bool:
    """Whether `host` is an IP address or a name of labels of 1–63 characters; others fail late, at the resolver."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.removesuffix(".").split(".")
        # Four numbers that are no address, 256.1.1.1, are a name to nobody.
        return len(host) <= 253 and not _QUAD.fullmatch(host) and all(_LABEL.fullmatch(label) for label in labels)
    return True


def _check_display_name(value: str) -> None:
    if value != value.strip() or not 1 <= len(value.encode("utf-8", "surrogatepass")) <= 256 or _CONTROL.search(value):
        raise EndpointInvalid("display_name is 1–256 bytes, trimmed, without control characters")
