"""Bytes of a request to one JSON value: bounded while they arrive, then read strictly.

What two readers could understand differently is refused; messages name the place or the rule, never the value.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.server.failures import ContentTypeUnsupported, EnvelopeTooLarge, EnvelopeUndecodable

__all__ = ["check_content_type", "parse_json", "read_limited"]

_DRAINED: Final = 8
"""How many times `max_bytes` is read and dropped: a client that is still sending can't hear the answer."""


def check_content_type(headers: Mapping[str, str]) -> None:
    """Accept `application/json` and `application/<anything>+json`, uncompressed. Raises ContentTypeUnsupported."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise ContentTypeUnsupported("send the envelope with the header Content-Type: application/json")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ContentTypeUnsupported("send the envelope without a Content-Encoding")


async def read_limited(chunks: AsyncIterator[bytes], *, announced: str | None, max_bytes: int) -> bytes:
    """Collect a body of at most `max_bytes`. announced: the Content-Length, if any. Raises EnvelopeTooLarge."""
    length = int(announced) if announced is not None and announced.isdecimal() and len(announced) < 19 else 0
    kept, size = bytearray(), 0
    if length <= max_bytes * _DRAINED:
        async for chunk in chunks:
            size += len(chunk)
            if size > max_bytes * _DRAINED:
                break
            if size <= max_bytes:
                kept += chunk
    if max(size, length) > max_bytes:
        raise EnvelopeTooLarge(f"the body exceeds {max_bytes} bytes", details={"max_request_bytes": max_bytes})
    return bytes(kept)


def parse_json(data: bytes) -> Any:
    """Return the one value that `data` spells. Raises EnvelopeUndecodable."""
    try:
        return wire.read_json(data)
    except wire.JsonProblem as exc:
        raise EnvelopeUndecodable(f"the body is not acceptable JSON: {exc}") from None
