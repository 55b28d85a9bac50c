"""The identities, each a type of its own.

Four of them are easily confused and never mix: the Action ID (one invocation), the idempotency key (a fence within a
capability's scope), the Hermes session id (one transcript row of one endpoint) and the Hermes session key (a memory
scope; no address, no authority). A wire string becomes an identity once, at the edge; inside, no function takes a bare
`str` for one of them, and they are passed by keyword.
"""

from __future__ import annotations

import os
import re
from typing import ClassVar, Self

__all__ = [
    "ActionId",
    "AipSessionId",
    "ApprovalId",
    "CapabilityId",
    "CorrelationId",
    "EndpointId",
    "HermesSessionId",
    "HermesSessionKey",
    "IdempotencyKey",
    "Identity",
    "IdentityError",
    "MessageId",
    "PrincipalId",
    "ReceiptId",
    "TenantId",
    "uuid7_hex",
]


class IdentityError(ValueError):
    """A string that can't be the identity it was offered as; the text names the rule, not the string."""


class Identity(str):
    """A string that checked itself; equal to, hashed and serialised like the plain string.

    Raises IdentityError when empty, when a declared prefix is missing or when `max_chars` is exceeded, and TypeError
    when another kind of identity is offered.
    """

    prefix: ClassVar[str] = ""
    max_chars: ClassVar[int] = 4096

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if isinstance(value, Identity) and type(value) is not cls:
            raise TypeError(f"a {type(value).__name__} is no {cls.__name__}")
        if not isinstance(value, str):
            raise TypeError(f"a {type(value).__name__} is no {cls.__name__}")
        if not value:
            raise IdentityError("identifier is empty")
        if not value.startswith(cls.prefix):
            raise IdentityError(f"identifier does not start with expected prefix `{cls.prefix}`")
        if len(value) > cls.max_chars:
            raise IdentityError(f"identifier is longer than {cls.max_chars} characters")
        cls.check(value)
        return super().__new__(cls, value)

    @classmethod
    def check(cls, value: str) -> None:
        """Raise IdentityError when `value` breaks a rule of this kind beyond prefix and length."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class ActionId(Identity):
    """One invocation, owned by the runtime, unique per tenant. `act_` plus any rest."""

    prefix = "act_"


class ApprovalId(Identity):
    """One approval request. `appr_` plus any rest."""

    prefix = "appr_"


class MessageId(Identity):
    """One envelope; claimed once within the replay window."""

    prefix = "msg_"


class ReceiptId(Identity):
    """One receipt of a chain."""

    prefix = "rcpt_"


class CorrelationId(Identity):
    """What a caller groups its messages by."""

    prefix = "corr_"


class AipSessionId(Identity):
    """An AIP interaction context. Not a Hermes transcript."""

    prefix = "sess_"


class CapabilityId(Identity):
    """`cap:<owner>:<…>`, here `cap:hermes_agent:<endpoint>:<operation>`."""


class PrincipalId(Identity):
    """Who acts: `human:…`, `agent:…`, `service:…`."""


class TenantId(Identity):
    """1–512 bytes, no surrounding white space, no control characters."""

    @classmethod
    def check(cls, value: str) -> None:
        if len(value.encode("utf-8", "surrogatepass")) > 512 or value != value.strip() or _CONTROL.search(value):
            raise IdentityError("a tenant id is 1–512 bytes without surrounding white space or control characters")


class EndpointId(Identity):
    """A configured Hermes endpoint: 1–128 of a–z, 0–9, `-`, `_`."""

    @classmethod
    def check(cls, value: str) -> None:
        if not _ENDPOINT.fullmatch(value):
            raise IdentityError("an endpoint id is 1–128 lower-case letters, digits, `-` or `_`")


class IdempotencyKey(Identity):
    """A fence within a capability's scope: 1–255 visible ASCII characters (design D5)."""

    max_chars = 255

    @classmethod
    def check(cls, value: str) -> None:
        if not _VISIBLE.fullmatch(value):
            raise IdentityError("an idempotency key is 1–255 visible ASCII characters")


class HermesSessionId(Identity):
    """One transcript row of one endpoint, whatever characters the endpoint issued.

    The rules of creation live in hermes_api/: an id that an endpoint may have issued must stay readable (design D12).
    """


class HermesSessionKey(Identity):
    """A memory scope of Hermes: no address of a transcript and no authority. At most 256 characters."""

    max_chars = 256

    @classmethod
    def check(cls, value: str) -> None:
        if not value.strip() or any(c in value for c in "\r\n\0"):
            raise IdentityError("a session key is 1–256 characters, not blank, without CR, LF or NUL")

    def __repr__(self) -> str:
        return "HermesSessionKey('***')"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_VISIBLE = re.compile(r"[\x21-\x7e]{1,255}")
_ENDPOINT = re.compile(r"[a-z0-9_-]{1,128}")


def uuid7_hex(now_ms: int) -> str:
    """Return the 32 lower-case hex digits of a UUID version 7 for the Unix time `now_ms`; such ids sort by creation."""
    random = int.from_bytes(os.urandom(10), "big")
    time_and_version = (now_ms & (1 << 48) - 1) << 16 | 0x7000 | random >> 62 & 0xFFF
    variant_and_rest = 1 << 63 | random & (1 << 62) - 1
    return f"{time_and_version:016x}{variant_and_rest:016x}"
