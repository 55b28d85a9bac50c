"""One stream of events, from the request to its last chunk: each chunk is stored before the next is read.

Source: connector contract §10–§12; design D17.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from aip_hermes.contract import load_capability_file
from aip_hermes.contract.handler import Answer, Call, Chunk, Publish
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.client import Incoming
from aip_hermes.hermes.exchange import Received, RequestSpec
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.run_ends import about_run, ended_run
from aip_hermes.hermes.stream import DEFAULT_EVENTS, StreamCollector, may_exceed
from aip_hermes.hermes.stream_failures import ended_badly, publication_failed, unreadable
from aip_hermes.sse import Decoder, SseError

__all__ = ["MAX_FRAME_BYTES", "MAX_STREAM_BYTES", "read_stream"]

MAX_FRAME_BYTES: Final = load_capability_file().connector.max_sse_frame_bytes
MAX_STREAM_BYTES: Final = load_capability_file().connector.max_stream_response_bytes


async def read_stream(
    attempts: Attempts,
    request: RequestSpec,
    asked: Asked,
    *,
    operation: Operation,
    call: Call,
    publish: Publish,
) -> tuple[Answer, Received]:
    """Send the request once, publish what comes, and return the end, with what the answer began with.

    Raises: HermesFailed; its `output` holds what had come, where a stream had begun.
    """
    collector = StreamCollector(
        operation.stream, operation=operation.name, max_events=int(call.input.get("max_events", DEFAULT_EVENTS))
    )
    began: Received | None = None
    try:
        async with attempts.streaming(
            request, asked, deadline_ms=call.deadline_ms, idle_s=operation.idle_timeout_s
        ) as incoming:
            began = Received(status=incoming.status, headers=incoming.headers, body=b"")
            await _collect(incoming, asked, collector, publish)
        failed = ended_badly(asked, began.status, collector)
        if failed is not None:
            raise failed
    except HermesFailed as failure:
        if began is not None:
            failure.output = collector.output(endpoint_id=str(asked.endpoint.id), http_status=began.status)
            failure.ends = ended_run(failure.output, operation, asked)
        raise
    output = collector.output(endpoint_id=str(asked.endpoint.id), http_status=began.status)
    answer = Answer(output=output, text=output["text"], cancelled=collector.ending == "cancelled")
    return about_run(answer, operation, asked), began


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
