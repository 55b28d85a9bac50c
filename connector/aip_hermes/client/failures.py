"""What can go wrong between a client and an AIP server.

    ClientFailure
    ├── NotReachable          no request was sent
    │   ├── ConnectionRefused     nobody listens there
    │   ├── NameNotResolved       the host name has no address
    │   ├── TlsFailed             no trusted encrypted connection
    │   └── ConnectTimedOut       nobody answered the connection attempt
    ├── NoAnswer              sent, and the answer was lost
    ├── Undecodable           answered, and the answer is no AIP reply
    ├── TooLarge              the answer exceeds the limit
    ├── StreamLost            the rest of a stream could not be had
    ├── HttpFailed            an error status without a protocol error
    └── PeerError             the server's own protocol error

`uncertain` is true wherever the server may have carried out what was sent. Every failure names the next safe step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from aip_hermes.errors import AipError, ErrorCategory

if TYPE_CHECKING:
    from aip_hermes.client.identities import CallIdentities

__all__ = [
    "ClientFailure",
    "ConnectTimedOut",
    "ConnectionRefused",
    "HttpFailed",
    "NameNotResolved",
    "NoAnswer",
    "NotReachable",
    "PeerError",
    "StreamLost",
    "TlsFailed",
    "TooLarge",
    "Undecodable",
    "Unusable",
]


class ClientFailure(AipError, category="transport", component="aip-client"):
    """The exchange did not end with a reply.

    http_status: None while there was no answer. next_step: one sentence for a person. identities: of the call that
    failed, where AipClient made it.
    """

    fixed_next_step: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        next_step: str | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        uncertain: bool = False,
    ) -> None:
        super().__init__(
            message, details=details, retryable=retryable, retry_after_ms=retry_after_ms, uncertain=uncertain
        )
        self.http_status = http_status
        self.next_step = type(self).fixed_next_step if next_step is None else next_step
        self.identities: CallIdentities | None = None


class NotReachable(ClientFailure, code="client.not_reachable", retryable=True):
    """No connection, so no request: certain."""

    fixed_next_step = "check the URL and the network between here and the server"


class Unusable(ClientFailure, code="client.unusable", category="permanent"):
    """This client can't send any more, so no request: certain."""

    fixed_next_step = "make a client in the event loop that uses it, and close it there after its last call"


class ConnectionRefused(NotReachable, code="client.connection_refused"):
    """Nobody listens at that host and port."""

    fixed_next_step = (
        "is the server running? start one with `aip-hermes up`, and compare the port with the one it prints"
    )


class NameNotResolved(NotReachable, code="client.name_not_resolved"):
    """The host name has no address."""

    fixed_next_step = "check the spelling of the host name in the URL"


class TlsFailed(NotReachable, code="client.tls_failed"):
    """No encrypted connection that this machine trusts."""

    fixed_next_step = (
        "does the server speak https there? a certificate of your own authority needs "
        "--native-tls-ca-file FILE (of `aip-hermes verify`: --tls-ca-file FILE)"
    )


class ConnectTimedOut(NotReachable, code="client.connect_timeout"):
    """The connection attempt was not answered in time."""


class NoAnswer(ClientFailure, code="client.no_answer"):
    """The connection ended, or the time was up, after the request may have left; uncertain unless it only reads."""


class Undecodable(ClientFailure, code="client.undecodable"):
    """The answer is no AIP reply; uncertain when the request could change something."""

    fixed_next_step = "is this the URL of an AIP server? its path /health names the service that answers"


class TooLarge(ClientFailure, code="client.response_too_large", category="permanent"):
    """The answer is longer than the limit and was not read to its end."""

    fixed_next_step = "raise the limit with --native-max-response-bytes, or ask for less (--limit)"


class StreamLost(ClientFailure, code="client.stream_lost", retryable=True):
    """A stream broke, and trying to go on behind its last position did not help. What is followed may go on.

    cursor: the position behind everything that was handed out; None when that was nothing.
    """

    fixed_next_step = "follow again later, with that cursor: nothing is lost or repeated behind it"

    def __init__(self, message: str, *, cursor: str | None) -> None:
        super().__init__(message, details={"cursor": cursor})
        self.cursor = cursor


class HttpFailed(ClientFailure, code="client.http_failed"):
    """An error status without a protocol error, also a redirection: those are never followed."""

    fixed_next_step = "is this the URL of an AIP server, without a proxy or a login page in between?"


class PeerError(ClientFailure):
    """The server refused, with its own code, category and message.

    report: the whole failure in one line. All of it is the server's words: escape them before a terminal shows them.
    """

    def __init__(self, error: Mapping[str, Any], *, http_status: int, report: str | None = None) -> None:
        details = error.get("details")
        details = details if isinstance(details, Mapping) else {}
        retry_after = error.get("retry_after_ms")
        super().__init__(
            str(error.get("message", "")),
            http_status=http_status,
            details=details,
            retryable=error.get("retryable") is True,
            retry_after_ms=retry_after if isinstance(retry_after, int) else None,
            uncertain=details.get("uncertain_outcome") is True,
        )
        category = error.get("category")
        # Code and category belong to this one error, where every other class of the tree has them once for all.
        vars(self)["code"] = str(error.get("code", ""))
        vars(self)["category"] = category if category in get_args(ErrorCategory) else _category_of(http_status)
        self.report = report or f"AIP peer error {self.code}: {self.message} (HTTP {http_status})"


def _category_of(http_status: int) -> ErrorCategory:
    """Return the category that a status stands for where the body names none (the catalogue's error shape)."""
    if http_status == 401:
        return "auth"
    if http_status == 403:
        return "policy"
    return "temporary" if http_status >= 500 else "permanent"
