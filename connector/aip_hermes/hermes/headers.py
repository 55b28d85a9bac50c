"""The headers of a request to an endpoint: from trusted context only, never from a payload.

`X-Hermes-Session-Id` is sent where a row says that its operation reads the session there, and nowhere else: an id in
two places could only disagree. No route reads an `X-AIP-…` header. Source: connector contract §9; design D18.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from aip_hermes.contract.handler import Call
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.ids import HermesSessionKey

__all__ = ["MAX_HEADER_BYTES", "HeaderRefused", "base_headers", "headers_of_call"]

MAX_HEADER_BYTES: Final = 16_384

_VALUE: Final = re.compile(rb"[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?")

Headers = tuple[tuple[str, bytes], ...]


class HeaderRefused(ValueError):
    """A value that no header can carry; the text names the header, never the value."""


def base_headers(endpoint: Endpoint, *, auth: bool, body: bool, stream: bool = False) -> Headers:
    """Return what every request carries: the credential, unless the route takes none, and the media types."""
    headers = [("Accept", b"text/event-stream" if stream else b"application/json")]
    if auth and endpoint.key is not None:
        headers.append(("Authorization", b"Bearer " + endpoint.key.reveal().encode("utf-8")))
    if body:
        headers.append(("Content-Type", b"application/json"))
    return tuple(headers)


def headers_of_call(
    *,
    operation: Operation,
    endpoint: Endpoint,
    call: Call,
    session_id: str | None,
    session_key: HermesSessionKey | None,
) -> Headers:
    """Return the headers of one attempt. A route without authentication learns nothing about the caller.

    session_id: what the call names, sent where the row's `session_place` is the header.

    Raises: HeaderRefused.
    """
    base = base_headers(endpoint, auth=operation.auth, body=operation.body != "none", stream=operation.stream != "none")
    if not operation.auth:
        return base
    context = _context(operation, call, session_id, session_key)
    return base + tuple((name, _value(name, text)) for name, text in context)


def _context(
    operation: Operation, call: Call, session_id: str | None, session_key: HermesSessionKey | None
) -> Iterator[tuple[str, str]]:
    if session_id is not None and operation.session_place == "header":
        yield "X-Hermes-Session-Id", session_id
    if session_key is not None:
        # Surrounding white space is no part of a scope: the endpoint trims it, and a header can't carry it.
        yield "X-Hermes-Session-Key", session_key.strip()
    if call.idempotency_key is not None and not operation.read_only:
        yield "Idempotency-Key", call.idempotency_key
    if call.aip_session_id is not None:
        yield "X-AIP-Session-Id", call.aip_session_id
    if (correlation := call.trace_id or call.correlation_id) is not None:
        yield "X-AIP-Correlation-Id", correlation
    if call.delegation_chain:
        chain = [dict(link) for link in call.delegation_chain]
        yield "X-AIP-Delegation-Chain", json.dumps(chain, ensure_ascii=False, separators=(",", ":"))
    yield "X-AIP-Principal-Id", call.actor.principal_id
    if call.actor.tenant_id is not None:
        yield "X-AIP-Tenant-Id", call.actor.tenant_id
    yield "X-AIP-Authentication-Issuer", call.actor.issuer
    if call.trace_id is not None:
        yield "X-AIP-Trace-Id", call.trace_id
    if call.deadline_ms is not None:
        yield "X-AIP-Deadline-Unix-Ms", str(call.deadline_ms)


def _value(name: str, text: str) -> bytes:
    try:
        value = text.encode("utf-8")
    except UnicodeEncodeError:
        raise HeaderRefused(f"header {name} would contain a lone surrogate") from None
    if len(value) > MAX_HEADER_BYTES:
        raise HeaderRefused(f"header {name} would be longer than {MAX_HEADER_BYTES} bytes")
    if not _VALUE.fullmatch(value):
        raise HeaderRefused(f"header {name} would be empty or hold control characters or surrounding white space")
    return value
