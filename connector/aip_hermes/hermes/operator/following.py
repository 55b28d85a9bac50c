"""Following one run to its end or to a question: its events once, then its status. Reads only.

Events are handed out once, to one reader; where they are gone or break off, the status says what became of the run. A
state that is none of those known is an error, never a success. Source: connector contract §18.2.4; API page §6.4.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from aip_hermes.contract.handler import Call, Chunk, ChunkKind, JsonObject, Publish
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.answer import clean_text
from aip_hermes.hermes.failures import DeadlineExceeded, HermesFailed, StreamPublication
from aip_hermes.hermes.operator.binding import RunState
from aip_hermes.hermes.operator.ground import Ground
from aip_hermes.hermes.stream import StreamCollector, may_exceed
from aip_hermes.hermes.stream_failures import publication_failed
from aip_hermes.hermes.stream_reading import MAX_FRAME_BYTES, MAX_STREAM_BYTES
from aip_hermes.sse import Decoder, Frame, SseError

__all__ = ["Followed", "Lost", "RunEnd", "follow", "told_again"]

_GOING_ON: Final = frozenset({"queued", "running", "stopping"})
_ENDS: Final[Mapping[str, tuple[RunState, ChunkKind]]] = {
    "completed": ("completed", "done"),
    "cancelled": ("cancelled", "done"),
    "failed": ("failed", "error"),
}
_CANCELLING_POLL_MS: Final = 250
_ENVELOPE: Final = frozenset({"event", "run_id", "timestamp"})
_EVENT_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Lost(Exception):
    """What became of the run can't be learned. reason: for the error's details; the text is a sentence."""

    def __init__(self, reason: str, sentence: str, *, provider: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.sentence = sentence
        self.provider = provider


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnd:
    """Where a run stands when following stops. provider: what the endpoint said of the end. pending: what it asks."""

    status: RunState
    last_event: str | None
    provider: JsonObject | None = None
    pending: JsonObject | None = None


@dataclass(kw_only=True, slots=True)
class Followed:
    """A run that is followed in this process.

    asked: set when the run is to be stopped. over: set when following has stopped. sequence: events published before.
    answered_at: the run's own time of the question that was answered last; None where none was. note: keeps what was
    seen.
    """

    call: Call
    run_id: str
    publish: Publish
    note: Callable[[str | None, int], Awaitable[None]]
    asked: asyncio.Event
    sequence: int = 0
    answered: bool = False
    answered_at: float | None = None
    told_end: bool = field(default=False)
    told: str | None = field(default=None)


async def follow(ground: Ground, run: Followed) -> RunEnd:
    """Return the end of a run, or the question that it waits with.

    Raises: Lost; StreamPublication, uncertain.
    """
    if run.sequence == 0 and not run.answered:
        end = await _unless_asked(run, _read_events(ground, run))
        if end is not None:
            return end
    return await _poll(ground, run)


async def told_again(ground: Ground, call: Call, *, run_id: str, status: RunState) -> JsonObject | None:
    """Return what the endpoint still says of a run that has ended so; None where it says nothing of that end."""
    asked = ground.asked(call, mutation=False, run_id=run_id)
    try:
        said = await ground.attempts.once(ground.read(run_id), asked, deadline_ms=call.deadline_ms)
    except HermesFailed:
        return None
    return said if said.get("status") == status and not _of_another(said, run_id) else None


async def _unless_asked(run: Followed, work: Awaitable[RunEnd | None]) -> RunEnd | None:
    """Return what `work` returns, or None as soon as somebody asks to stop the run."""
    reading = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(run.asked.wait())
    try:
        await asyncio.wait((reading, asked), return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else None
    finally:
        for task in (reading, asked):
            task.cancel()
        await asyncio.gather(reading, asked, return_exceptions=True)


async def _read_events(ground: Ground, run: Followed) -> RunEnd | None:
    """Publish the events; return the end or the question that they tell, None where they don't."""
    collector = StreamCollector("run", operation=ground.operation.name, max_events=ground.policy.max_events)
    decoder = Decoder(
        max_line_bytes=MAX_FRAME_BYTES,
        max_frame_bytes=MAX_FRAME_BYTES,
        max_stream_bytes=MAX_STREAM_BYTES,
        max_events=None,
        may_exceed=may_exceed,
    )
    asked = ground.asked(run.call, mutation=False, run_id=run.run_id)
    try:
        async with (
            ground.attempts.streaming(
                ground.read(run.run_id, events=True),
                asked,
                deadline_ms=run.call.deadline_ms,
                idle_s=ground.operation.idle_timeout_s,
            ) as incoming,
            aclosing(incoming.parts()) as parts,
        ):
            async for part in parts:
                for frame in decoder.feed(part):
                    end = await _take(ground, run, collector, frame)
                    if end is not None or collector.ending is not None:
                        return end
    except StreamPublication:
        raise
    except (HermesFailed, SseError):
        return None
    return None


async def _take(ground: Ground, run: Followed, collector: StreamCollector, frame: Frame) -> RunEnd | None:
    chunk = collector.take(frame)
    name, data = collector.last_name, chunk.data["hermes_sse"]["data"]
    members = data if isinstance(data, dict) else {"event": name, "data": data}
    kind: ChunkKind = "progress" if chunk.kind == "data" and name != "message.delta" else chunk.kind
    await _publish(ground, run, Chunk(kind=kind, data={"hermes_operator": members}, text=chunk.text))
    if name not in ("message.delta", "reasoning.available") or run.sequence == 1:
        # What a model says comes word by word; the states between are what a new start needs to know.
        await run.note(_event_name(name), run.sequence)
    if _of_another(members, run.run_id):
        return None
    if name == "approval.request":
        asked = {key: value for key, value in members.items() if key not in _ENVELOPE}
        return RunEnd(status="waiting_for_approval", last_event=name, pending=asked)
    if collector.ending in ("completed", "cancelled", "failed"):
        run.told_end = True
        said = {key: value for key, value in members.items() if key not in _ENVELOPE}
        if collector.ending == "completed" and "output" not in said:
            return None  # the event was cut or says less than the status does
        return RunEnd(status=_ENDS[str(collector.ending)][0], last_event=name, provider=said)
    return None


async def _poll(ground: Ground, run: Followed) -> RunEnd:
    clock, deadline_ms = ground.clock, run.call.deadline_ms
    grace_ends: int | None = None
    while True:
        now = clock.now_ms()
        if run.asked.is_set() and grace_ends is None:
            grace_ends = now + ground.policy.cancel_grace_ms
        if grace_ends is not None and now >= grace_ends:
            raise Lost(
                "cancellation_outcome_unknown", "was asked to stop the run and did not show in time that it ended"
            )
        if deadline_ms is not None and now >= deadline_ms:
            raise Lost("timeout", "had not ended the run when the action's time was over")
        ends = [end for end in (grace_ends, deadline_ms) if end is not None]
        status = await _status(ground, run, until_ms=min(ends, default=None))
        if status is not None and (end := await _judge(ground, run, status)) is not None:
            return end
        wait_ms = ground.policy.poll_interval_ms
        if grace_ends is not None:
            wait_ms = min(wait_ms, _CANCELLING_POLL_MS)
        await _nap(ground, run, min([wait_ms, *(max(end - clock.now_ms(), 1) for end in ends)]) / 1000)


async def _status(ground: Ground, run: Followed, *, until_ms: int | None) -> JsonObject | None:
    """Read the status once; None after a passing failure."""
    asked = ground.asked(run.call, mutation=False, run_id=run.run_id)
    try:
        return await ground.attempts.once(ground.read(run.run_id), asked, deadline_ms=until_ms)
    except HermesFailed as failure:
        if failure.retryable or isinstance(failure, DeadlineExceeded):
            return None
        said = "does not know the run any more" if failure.details["remote_status"] == 404 else "can't be asked for it"
        reason = "run_forgotten" if failure.details["remote_status"] == 404 else "status_unreadable"
        raise Lost(reason, said, provider=failure.details.get("provider")) from failure


async def _judge(ground: Ground, run: Followed, status: JsonObject) -> RunEnd | None:
    if _of_another(status, run.run_id):
        raise Lost("other_run", "answered for another run than the one that it was asked for")
    state, last_event = str(status.get("status")), _event_name(status.get("last_event"))
    if state in _ENDS:
        known, kind = _ENDS[state]
        if not run.told_end:
            run.told_end = True
            await _publish(ground, run, _told(f"run.{state}", kind, run, status))
        return RunEnd(status=known, last_event=last_event or f"run.{state}", provider=status)
    if state == "waiting_for_approval":
        if run.asked.is_set() or _answered_already(run, status, last_event):
            return None
        await _publish(ground, run, _told("approval.request", "pending_approval", run, status))
        # What exactly is asked was told in the events, to their one reader.
        return RunEnd(status="waiting_for_approval", last_event=last_event, pending={})
    if state in _GOING_ON:
        if state != run.told:
            run.told = state
            await _publish(ground, run, _told("run.status", "progress", run, status))
        return None
    shown = clean_text(ground.asked(run.call, mutation=False), state)[:64]
    raise Lost("unknown_state", f"says that the run is `{shown}`, which is no known state")


def _of_another(told: Mapping[str, Any], run_id: str) -> bool:
    """Whether an event or a status names a run, and not ours. Who names none is believed."""
    return isinstance(named := told.get("run_id"), str) and named != run_id


def _event_name(name: object) -> str | None:
    """Return a name that is one; what is longer or holds other characters may be anything, also a transcript."""
    return name if isinstance(name, str) and _EVENT_NAME.fullmatch(name) else None


def _answered_already(run: Followed, status: Mapping[str, Any], last_event: str | None) -> bool:
    """Whether a run that says it waits still means the question that was answered."""
    if not run.answered:
        return False
    return last_event not in (None, "approval.request") or (
        run.answered_at is not None and status.get("updated_at") == run.answered_at
    )


def _told(event: str, kind: ChunkKind, run: Followed, status: Mapping[str, Any]) -> Chunk:
    return Chunk(
        kind=kind,
        data={"hermes_operator": {"event": event, "run_id": run.run_id, "status": status.get("status")}},
    )


async def _publish(ground: Ground, run: Followed, chunk: Chunk) -> None:
    run.sequence += 1
    try:
        await run.publish(chunk)
    except ActionFailed as exc:
        raise publication_failed(ground.asked(run.call, mutation=True, run_id=run.run_id), 200, exc) from exc


async def _nap(ground: Ground, run: Followed, seconds: float) -> None:
    """Sleep, or less where somebody asks to stop the run meanwhile."""
    if run.asked.is_set():
        await ground.clock.sleep(seconds)
        return
    sleeping = asyncio.ensure_future(ground.clock.sleep(seconds))
    asked = asyncio.ensure_future(run.asked.wait())
    try:
        await asyncio.wait((sleeping, asked), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sleeping, asked):
            task.cancel()
        await asyncio.gather(sleeping, asked, return_exceptions=True)
