"""What passes between the handler and the HTTP client: one request, one answer, or the way in which it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ExchangeFailed", "FailureReason", "Received", "RequestSpec"]

FailureReason = Literal[
    "refused", "unreachable", "unresolved", "connect_timeout", "tls", "proxy", "timeout", "idle", "broken", "too_large"
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestSpec:
    """One HTTP request to an endpoint.

    target: path and query, percent-encoded, ASCII. headers: values as bytes, since a header may be UTF-8. timeout_s:
    for the whole exchange. mutation: whether it may change anything, so that it only travels on a fresh connection.
    """

    method: str
    target: str
    headers: tuple[tuple[str, bytes], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout_s: float
    mutation: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """An answer, read to its end. headers: lower-case names, the last of equal ones. body: within the limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class ExchangeFailed(Exception):
    """No whole answer arrived.

    reason: for a fixed text without addresses. sent: False only where it is certain that no byte of the request left;
    True otherwise. status: of the answer that broke off or was too large.
    """

    def __init__(self, reason: FailureReason, *, sent: bool, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason: FailureReason = reason
        self.sent = sent
        self.status = status
