"""Answers: envelopes, bare bodies, errors. Every JSON answer of the server is built here.

Three styles (HTTP surface, "Surface at a glance"): the message routes answer envelopes, the read routes the bare body
object, and every failure is an error envelope; only the catalogue has an error shape of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.errors import AipError
from aip_hermes.ids import MessageId
from aip_hermes.ports import Clock, NewId
from aip_hermes.server.failures import EnvelopeUndecodable, status_of

__all__ = ["Replies", "json_response"]

_NO_STORE: Final = {"cache-control": "no-store"}


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return `value` as JSON text; answers are about one caller, so no cache may keep them."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A provider's text may hold an unpaired surrogate; escaped it stays legal JSON, encoded it would be none.
    data = text.encode("utf-8") if text.isascii() else _encoded(text, value)
    return Response(data, status, {**_NO_STORE, **(headers or {})}, media_type="application/json")


def _encoded(text: str, value: Any) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


class Replies:
    """Envelopes from this server. agent: the principal of the manifest, every reply's `from`."""

    def __init__(self, *, agent: wire.Principal, clock: Clock, new_id: NewId) -> None:
        self.agent = agent
        self._clock = clock
        self._new_id = new_id

    def answer(self, body: Mapping[str, Any], request: wire.Envelope) -> Response:
        """Return the envelope that answers `request`: session and correlation copied, `to` = its `from` as sent."""
        envelope = wire.new_envelope(
            body,
            message_id=MessageId(self._new_id(MessageId.prefix)),
            sent_at_ms=self._clock.now_ms(),
            in_response_to=request.message_id,
            session_id=request.session_id,
            correlation_id=request.correlation_id,
            from_=self.agent,
            to=request.from_,
        )
        return json_response(envelope.wire())

    def refusal(self, error: AipError, *, headers: Mapping[str, str] | None = None) -> Response:
        """Return an error envelope with the status of the error; it names neither request nor receiver."""
        envelope = wire.new_envelope(
            error_body(error),
            message_id=MessageId(self._new_id(MessageId.prefix)),
            sent_at_ms=self._clock.now_ms(),
        )
        return json_response(envelope.wire(), status=status_of(error), headers=headers)

    def unreadable(self) -> bytes:
        """Return the error envelope that answers bytes which are no HTTP request."""
        return bytes(self.refusal(EnvelopeUndecodable("what was sent is no HTTP/1.1 request")).body)


def error_body(error: AipError) -> dict[str, Any]:
    """Return the message body `{"error": {"error": …}}`."""
    return {"error": {"error": wire.protocol_error(error).wire()}}
