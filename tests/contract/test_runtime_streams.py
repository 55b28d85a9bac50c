"""Chunks, event pages and cancellation over a real store, with a scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Chunk, Publish
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.runtime import Runtime
from tests.support.runtime_connector import ScriptedCancelled, ScriptedConnector
from tests.support.runtime_site import (
    Crash,
    CrashAt,
    Site,
    action,
    approval_request,
    caller,
    decision,
    requester,
    reviewer,
)

STREAMED = {"echo": "whole"}
WRITING = frozenset({"action:read", "action:write", "approval:read"})


def owner(**changes: Any) -> Any:
    return requester(**{"scopes": WRITING, **changes})


def streaming_site(folder: Path, stream: Callable[[Publish], Awaitable[Answer]] | None = None) -> Site:
    connector = ScriptedConnector(streaming=frozenset({"session_chat"}), stream=stream)
    return Site(folder, connector=connector)


def uncertain(result: wire.ActionResult) -> bool:
    details = result.error.details if result.error is not None else None
    return isinstance(details, dict) and details.get("uncertain_outcome") is True


async def pages(
    runtime: Runtime, action_id: str, *, limit: int = 100, **options: Any
) -> tuple[list[wire.Event], list[wire.StreamChunk]]:
    """Read page after page until terminal."""
    events: list[wire.Event] = []
    chunks: list[wire.StreamChunk] = []
    cursor = None
    while True:
        page = await runtime.events(action_id, owner(), cursor=cursor, limit=limit, **options)
        events += page.events
        chunks += page.chunks
        cursor = page.cursor
        if page.terminal:
            return events, chunks


class Gate:
    """A stream that stops after each chunk until it is let on."""

    def __init__(self, chunks: int, *, answer: Answer | None = None) -> None:
        self.published = asyncio.Semaphore(0)
        self.go_on = asyncio.Semaphore(0)
        self._chunks = chunks
        self._answer = answer or Answer(output=STREAMED)

    async def __call__(self, publish: Publish) -> Answer:
        for number in range(self._chunks):
            await publish(Chunk(kind="data", data={"n": number}, text=f"secret text {number}"))
            self.published.release()
            await self.go_on.acquire()
        await publish(Chunk(kind="done", data={}))
        return self._answer


@pytest.mark.requirement("runtime:chunks:visible-while-running", "runtime:chunks:sync-too", "runtime:events:no-text")
@pytest.mark.parametrize("mode", ["sync", "streaming"])
async def test_a_chunk_is_readable_while_the_action_runs(tmp_path: Path, mode: str) -> None:
    gate = Gate(2)
    site = streaming_site(tmp_path, gate)
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat", mode=mode)
        running = asyncio.create_task(site.submit(runtime, given))
        await gate.published.acquire()
        page = await runtime.events(given.id, owner(), include_chunks=True)
        assert [chunk.sequence for chunk in page.chunks] == [0]
        assert page.chunks[0].part == wire.TextPart(type="text", text="secret text 0", format="plain")
        assert [event.kind for event in page.events] == ["aip.stream.chunk"]
        assert page.events[0].data == {"sequence": 0, "kind": "data"}
        assert page.terminal is False
        gate.go_on.release()
        gate.go_on.release()
        assert (await running).status == "completed"
        events, chunks = await pages(runtime, given.id, include_chunks=True)
    assert [chunk.kind for chunk in chunks] == ["data", "data", "done"]
    assert "secret text" not in str([event.wire() for event in events])


@pytest.mark.requirement("runtime:chunks:survive", "runtime:chunks:ordered")
@pytest.mark.parametrize(("point", "kept"), [("before_publish", 0), ("after_answer", 4)])
async def test_published_chunks_survive_a_crash(tmp_path: Path, point: str, kept: int) -> None:
    gate = Gate(3)
    site = streaming_site(tmp_path, gate)
    given = action("session_chat", mode="streaming")
    for _ in range(3):
        gate.go_on.release()
    site.faults = CrashAt(point)
    with pytest.raises(Crash):
        async with site.open() as runtime:
            await site.submit(runtime, given)
    async with site.open() as runtime:
        _, chunks = await pages(runtime, given.id, include_chunks=True)
        assert [chunk.sequence for chunk in chunks] == list(range(kept))
        status = await runtime.status(given.id, owner(), include_result=True)
    assert status.state == "failed"
    assert status.result is not None
    assert uncertain(status.result)


@pytest.mark.requirement("runtime:events:paging", "runtime:chunks:ordered")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("kinds", [(), ("aip.stream.chunk",), ("aip.action.result",)])
async def test_pages_repeat_nothing_and_skip_nothing(tmp_path: Path, limit: int, kinds: tuple[str, ...]) -> None:
    gate = Gate(4)
    site = streaming_site(tmp_path, gate)
    for _ in range(4):
        gate.go_on.release()
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat")
        await site.submit(runtime, given)
        whole = await runtime.events(given.id, owner(), include_chunks=True, kinds=kinds)
        events, chunks = await pages(runtime, given.id, limit=limit, include_chunks=True, kinds=kinds)
        without, none = await pages(runtime, given.id, limit=limit, kinds=kinds)
    assert events == whole.events == without
    assert chunks == whole.chunks
    assert none == []
    expected = {(): 6, ("aip.stream.chunk",): 5, ("aip.action.result",): 1}[kinds]
    assert len({event.id for event in events}) == len(events) == expected
    assert [chunk.sequence for chunk in chunks] == list(range(5))


@pytest.mark.requirement("runtime:events:cursor-errors")
@pytest.mark.parametrize(
    ("cursor", "code"),
    [
        ("evt_0123", "query.invalid_cursor"),
        ("offset:1", "query.invalid_cursor"),
        ("aev_cursor_1", "query.invalid_cursor"),
        ("aev_cursor_-1_none", "query.invalid_cursor"),
        ("aev_cursor_999999_none", "stream.cursor_expired"),
        ("evt_cursor_999999", "stream.cursor_expired"),
    ],
)
async def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: str, code: str) -> None:
    site = streaming_site(tmp_path)
    async with site.open() as runtime:
        given = action("session_chat")
        await site.submit(runtime, given)
        with pytest.raises(RequestRefused) as refused:
            await runtime.events(given.id, owner(), cursor=cursor)
    assert refused.value.code == code


@pytest.mark.requirement("runtime:cancel:before-dispatch", "runtime:cancel:key")
async def test_a_cancel_before_dispatch_sends_nothing(tmp_path: Path) -> None:
    gate = Gate(1)
    site = streaming_site(tmp_path, gate)
    async with site.open() as runtime, asyncio.timeout(30):
        first = asyncio.create_task(site.submit(runtime, action("session_chat")))
        await gate.published.acquire()
        waiting = action("session_chat", idempotency_key="k1")
        second = asyncio.create_task(site.submit(runtime, waiting))
        while (await runtime.status(waiting.id, owner())).state != "running":
            pass
        answered = await runtime.cancel(waiting.id, owner(), reason="changed my mind")
        assert answered.status == "cancelled"
        assert answered.error is not None
        assert answered.error.code == ScriptedCancelled.code
        assert not uncertain(answered)
        assert (await second).wire() == answered.wire()
        assert len(site.connector.sends) == 1
        gate.go_on.release()
        assert (await first).status == "completed"
        again = await site.submit(runtime, action("session_chat", idempotency_key="k1"))
        assert again.status == "cancelled"
        gate.go_on.release()
        assert (await site.submit(runtime, action("session_chat"))).status == "completed"
    assert site.connector.seen("cancel") == 0


@pytest.mark.requirement("runtime:cancel:in-flight")
async def test_a_running_stream_is_stopped_once_and_is_uncertain(tmp_path: Path) -> None:
    gate = Gate(1)
    site = streaming_site(tmp_path, gate)
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat", mode="streaming")
        running = asyncio.create_task(site.submit(runtime, given))
        await gate.published.acquire()
        answers = await asyncio.gather(*(runtime.cancel(given.id, owner()) for _ in range(5)))
        assert {answer.status for answer in answers} == {"cancelled"}
        result = await running
        assert result.wire() == answers[0].wire()
        assert uncertain(result)
        assert result.output == {"cancelled": True, "_aip": {"cancel": {"stopped": True, "note": "asked once"}}}
        status = await runtime.status(given.id, owner())
        assert (status.state, status.result_status) == ("cancelled", "cancelled")
        events, _ = await pages(runtime, given.id)
    assert [event.kind for event in events] == ["aip.stream.chunk", "aip.action.result", "aip.action.cancelled"]
    assert site.connector.seen("cancel") == 1


@pytest.mark.requirement("runtime:cancel:late")
async def test_a_late_cancel_returns_the_terminal_result(tmp_path: Path) -> None:
    site = streaming_site(tmp_path)
    async with site.open() as runtime:
        given = action("session_create", idempotency_key="k1")
        result = await site.submit(runtime, given)
        assert (await runtime.cancel(given.id, owner())).wire() == result.wire()
        assert (await runtime.status(given.id, owner())).state == "completed"
    assert site.connector.seen("cancel") == 0


@pytest.mark.requirement("runtime:cancel:unsupported")
async def test_what_was_sent_and_cannot_be_stopped_goes_on(tmp_path: Path) -> None:
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Answer:
        sent.set()
        await go_on.wait()
        return Answer(output=STREAMED)

    site = Site(tmp_path, connector=ScriptedConnector(send=slow))
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat")
        running = asyncio.create_task(site.submit(runtime, given))
        await sent.wait()
        with pytest.raises(RequestRefused) as refused:
            await runtime.cancel(given.id, owner())
        assert refused.value.code == "action.cancel_unsupported"
        go_on.set()
        assert (await running).status == "completed"


@pytest.mark.requirement("runtime:cancel:pending")
async def test_cancelling_a_parked_action_ends_its_approval(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.open() as runtime:
        given = action("session_delete", idempotency_key="k1")
        pending = await site.submit(runtime, given)
        request = approval_request(pending)
        answered = await runtime.cancel(given.id, owner(), reason="not needed")
        assert answered.status == "cancelled"
        record = await runtime.approval(request.id, reviewer())
        assert record.status == "revoked"
        with pytest.raises(RequestRefused) as refused:
            await runtime.decide(decision(request), reviewer())
        assert refused.value.details["code"] == "policy.approval_not_pending"
        replayed = await site.submit(runtime, action("session_delete", idempotency_key="k1"))
        assert replayed.status == "cancelled"
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:cancel:who")
@pytest.mark.parametrize(
    ("by", "code"),
    [
        (requester(), "auth.not_authorized"),
        (caller("agent:example:other", scopes=WRITING), "auth.not_authorized"),
        (caller("agent:example:requester", tenant="tenant-b", scopes=frozenset({"*"})), "resource.not_found"),
        (caller("agent:example:other", scopes=frozenset({"action:write:any"})), None),
        (owner(), None),
    ],
)
async def test_who_may_cancel(tmp_path: Path, by: Any, code: str | None) -> None:
    site = Site(tmp_path)
    async with site.open() as runtime:
        given = action("session_delete", idempotency_key="k1")
        await site.submit(runtime, given)
        if code is None:
            assert (await runtime.cancel(given.id, by)).status == "cancelled"
            return
        with pytest.raises(RequestRefused) as refused:
            await runtime.cancel(given.id, by)
        assert refused.value.code == code
        assert (await runtime.status(given.id, owner())).state == "pending_approval"


@pytest.mark.requirement("runtime:chunks:none-after-the-end")
async def test_what_is_said_after_the_end_is_not_kept(tmp_path: Path) -> None:
    spoken: list[Publish] = []

    async def stream(publish: Publish) -> Answer:
        spoken.append(publish)
        await publish(Chunk(kind="data", data={}, text="in time"))
        return Answer(output=STREAMED)

    site = streaming_site(tmp_path, stream)
    given = action("session_chat", mode="streaming")
    async with site.open() as runtime:
        await site.submit(runtime, given, owner())
        with pytest.raises(ActionFailed) as refused:
            await spoken[0](Chunk(kind="data", data={}, text="too late"))
        _, chunks = await pages(runtime, given.id, include_chunks=True)
    assert refused.value.code == "runtime.chunk_not_stored"
    assert [chunk.sequence for chunk in chunks] == [0]
