"""One stream of events, from the request to its last chunk: each chunk is stored before the next is read.

Source: connector contract §10–§12; design D17.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from aip_hermes.contract.handler import Answer, Chunk, Publish
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.client import Incoming
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.stream import StreamCollector, may_exceed
from aip_hermes.hermes.stream_failures import ended_badly, publication_failed, unreadable
from aip_hermes.sse import Decoder, SseError

__all__ = ["MAX_FRAME_BYTES", "MAX_STREAM_BYTES", "read_stream"]

MAX_FRAME_BYTES: Final = 1_048_576
MAX_STREAM_BYTES: Final = 67_108_864


async def read_stream(
    attempts: Attempts,
    request: RequestSpec,
    asked: Asked,
    collector: StreamCollector,
    publish: Publish,
    *,
    deadline_ms: int | None,
    idle_s: float,
) -> Answer:
    """Send the request once, publish what comes, and return the end.

    Raises: HermesFailed; its `output` holds what had come, where a stream had begun.
    """
    status: int | None = None
    try:
        async with attempts.streaming(request, asked, deadline_ms=deadline_ms, idle_s=idle_s) as incoming:
            status = incoming.status
            await _collect(incoming, asked, collector, publish)
        failed = ended_badly(asked, status, collector)
        if failed is not None:
            raise failed
    except HermesFailed as failure:
        if status is not None:
            failure.output = collector.output(endpoint_id=str(asked.endpoint.id), http_status=status)
        raise
    output = collector.output(endpoint_id=str(asked.endpoint.id), http_status=status)
    return Answer(output=output, text=output["text"], cancelled=collector.ending == "cancelled")


async def _collect(incoming: Incoming, asked: Asked, collector: StreamCollector, publish: Publish) -> None:
    async def put(chunk: Chunk | None) -> None:
        if chunk is None:
            return
        try:
            await publish(chunk)
        except ActionFailed as exc:
            raise publication_failed(asked, incoming.status, exc) from exc

    decoder = Decoder(
        max_line_bytes=MAX_FRAME_BYTES,
        max_frame_bytes=MAX_FRAME_BYTES,
        max_stream_bytes=MAX_STREAM_BYTES,
        max_events=None,
        may_exceed=may_exceed,
    )
    try:
        async with aclosing(incoming.parts()) as parts:
            async for part in parts:
                for frame in decoder.feed(part):
                    await put(collector.take(frame))
                    if collector.ending is not None:
                        return
        for frame in decoder.close():
            await put(collector.take_rest(frame))
        await put(collector.close())
    except SseError as exc:
        raise unreadable(asked, incoming.status, exc) from exc
