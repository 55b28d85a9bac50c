"""Running an attempt: time, output, evidence, session locks, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.database import AlreadyOwned
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.runtime import MessageContext
from tests.support.postgres import FILE_STORE
from tests.support.runtime_connector import ScriptedOutcomeUnknown, ScriptedRejected, ScriptedTemporary
from tests.support.runtime_site import Site, action, requester


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        yield Site(tmp_path)


class Provider:
    """Answers each call when told to. entered: calls so far, in order.

    Whom nobody answers fails after half a minute, so that a test that fails also ends.
    """

    def __init__(self, site: Site) -> None:
        self.entered: asyncio.Queue[Call] = asyncio.Queue()
        self.release: dict[str, asyncio.Future[Answer]] = {}
        site.connector.send = self._send

    async def _send(self, call: Call) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.release[call.action_id] = future
        self.entered.put_nowait(call)
        async with asyncio.timeout(30):
            return await future

    async def next(self) -> Call:
        async with asyncio.timeout(30):
            return await self.entered.get()

    def answer(self, call: Call, failure: ActionFailed | None = None) -> None:
        if failure is None:
            self.release[call.action_id].set_result(Answer(output={"ok": True}))
        else:
            self.release[call.action_id].set_exception(failure)


def error(result: wire.ActionResult) -> tuple[str, bool, bool | None]:
    """(code, uncertain, retryable)"""
    assert result.error is not None
    details: Mapping[str, Any] = result.error.details or {}
    return result.error.code, details.get("uncertain_outcome", False), result.error.retryable


@pytest.mark.requirement("runtime:result:deadline")
@pytest.mark.parametrize(
    ("operation", "asked_ms", "allowed_ms"),
    [("session_create", 5_000, 5_000), ("session_create", 900_000, 60_000), ("session_chat", None, 900_000)],
)
async def test_the_timeout_is_the_smaller_one_and_starts_when_nothing_is_waited_for(
    site: Site, operation: str, asked_ms: int | None, allowed_ms: int
) -> None:
    async with site.open() as runtime:
        await site.submit(runtime, action(operation, timeout_ms=asked_ms, idempotency_key="K"))
    assert site.connector.sends[0].deadline_ms == site.clock.now_ms() + allowed_ms


@pytest.mark.requirement("runtime:result:deadline")
async def test_time_spent_in_line_for_the_session_counts_for_nothing(site: Site) -> None:
    provider = Provider(site)
    async with site.open() as runtime, asyncio.timeout(30):
        holder = asyncio.create_task(site.submit(runtime, action("session_chat")))
        held = await provider.next()
        waiting = asyncio.create_task(site.submit(runtime, action("session_chat", timeout_ms=3_000)))
        await site.clock.until_asleep(10)
        site.clock.advance(4_000)
        provider.answer(held)
        late = await provider.next()
        assert late.deadline_ms == site.clock.now_ms() + 3_000
        provider.answer(late)
        assert {(await task).status for task in (holder, waiting)} == {"completed"}


@pytest.mark.requirement("runtime:result:deadline")
@pytest.mark.parametrize(
    ("operation", "uncertain"), [("session_create", True), ("session_chat", True), ("session_get", False)]
)
async def test_a_handler_that_overruns_its_deadline_is_ended(site: Site, operation: str, uncertain: bool) -> None:
    provider = Provider(site)
    given = action(operation, timeout_ms=5_000, idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(site.submit(runtime, given))
        await provider.next()
        await site.clock.until_asleep(6)
        site.clock.advance(6_000)
        result = await running
    assert error(result) == ("sla.timeout_exceeded", uncertain, not uncertain)


@pytest.mark.requirement("runtime:result:handler-fault")
@pytest.mark.parametrize(
    ("operation", "step", "uncertain"),
    [
        ("session_create", "check", False),
        ("session_create", "prepare", False),
        ("session_fork", "prepare", False),
        ("session_create", "send", True),
        ("session_fork", "send", True),
        ("session_get", "send", False),
        ("session_delete", "describe", False),
    ],
)
async def test_a_fault_of_a_handler_ends_its_action_definitely(
    site: Site, operation: str, step: str, uncertain: bool
) -> None:
    site.connector.failures[step] = KeyError("a bug")
    async with site.open() as runtime:
        result = await site.submit(runtime, action(operation, idempotency_key="K"))
    assert error(result) == ("connector.runtime_failure", uncertain, False)
    assert site.connector.seen("send") == (1 if step == "send" else 0)


@pytest.mark.requirement("runtime:result:confirm-adds-only")
@pytest.mark.parametrize("outcome", ["success", "failure"])
@pytest.mark.parametrize("confirm", ["adds", "turns", "raises", "breaks"])
async def test_reading_back_never_changes_the_outcome(site: Site, outcome: str, confirm: str) -> None:
    failed = ScriptedRejected("no", details={"fork": "read back"})
    answered = Answer(output={"ok": True, "_aip": {"fork": "read back"}})
    if outcome == "failure":
        site.connector.failures["send"] = ScriptedRejected("no")
    if confirm == "adds":
        site.connector.confirm = lambda given: answered if isinstance(given, Answer) else failed
    elif confirm == "turns":
        site.connector.confirm = lambda given: failed if isinstance(given, Answer) else answered
    else:
        site.connector.failures["confirm"] = ScriptedRejected("read") if confirm == "raises" else KeyError("a bug")
    async with site.open() as runtime:
        result = await site.submit(runtime, action("session_fork", idempotency_key="K"))
    assert result.status == ("completed" if outcome == "success" else "failed")
    evidence = result.output if outcome == "success" else (result.error.details if result.error else None)
    assert ("read back" in str(evidence)) is (confirm == "adds")


@pytest.mark.requirement("runtime:result:output-checked")
@pytest.mark.parametrize(("operation", "uncertain"), [("session_create", True), ("session_get", False)])
async def test_an_answer_outside_the_schema_is_a_failed_result(site: Site, operation: str, uncertain: bool) -> None:
    async def prose(call: Call) -> Answer:
        return Answer(output="it went well")  # type: ignore[arg-type]

    site.connector.send = prose
    given = action(operation, idempotency_key="K")
    async with site.open() as runtime:
        result = await site.submit(runtime, given)
        again = await site.submit(runtime, action(operation, idempotency_key="K"))
    assert error(result) == ("action.output_schema_invalid", uncertain, False)
    assert (again.action_id, again.error) == (given.id, result.error)
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:serial:one-at-a-time")
async def test_calls_of_one_session_run_one_at_a_time_in_order(site: Site) -> None:
    provider = Provider(site)
    turns = [action("session_chat") for _ in range(3)]
    fork = action("session_fork", idempotency_key="F")
    other = action("session_chat", input={"session_id": "s2", "message": "hi"})
    async with site.open() as runtime, asyncio.timeout(30):
        running = []
        for number, given in enumerate([*turns, fork]):
            running.append(asyncio.create_task(site.submit(runtime, given)))
            await site.clock.until_asleep(10, number=number) if number else None
            first = await provider.next() if number == 0 else None
            if first is not None:
                assert first.action_id == turns[0].id
                current = first
        running.append(asyncio.create_task(site.submit(runtime, other)))
        free = await provider.next()
        assert free.action_id == other.id
        provider.answer(free)
        order = [current.action_id]
        for _ in range(3):
            assert provider.entered.empty()
            provider.answer(current)
            current = await provider.next()
            order.append(current.action_id)
        provider.answer(current)
        results = await asyncio.gather(*running)
    assert order == [*(turn.id for turn in turns), fork.id]
    assert {result.status for result in results} == {"completed"}


@pytest.mark.requirement("runtime:serial:busy")
async def test_who_waits_too_long_for_a_session_fails_certain_and_may_try_again(site: Site) -> None:
    provider = Provider(site)
    late = action("session_fork", idempotency_key="F")
    async with site.open() as runtime, asyncio.timeout(30):
        holder = asyncio.create_task(site.submit(runtime, action("session_chat")))
        held = await provider.next()
        waiting = asyncio.create_task(site.submit(runtime, late))
        await site.clock.until_asleep(10)
        site.clock.advance(10_000)
        busy = await waiting
        provider.answer(held)
        await holder
        again = asyncio.create_task(site.submit(runtime, late))
        provider.answer(await provider.next())
        assert (await again).status == "completed"
    assert error(busy) == ("connector.scripted.session_busy", False, True)
    assert busy.error is not None
    assert busy.error.details == {"session_id": "s1", "reason": "held", "waited_ms": 10_000}
    assert sum(call.action_id == late.id for call in site.connector.sends) == 1


def _hop(sender: str, receiver: str) -> dict[str, Any]:
    return {
        "from": {"id": sender, "kind": "agent"},
        "to": {"id": receiver, "kind": "agent"},
        "scope": "action:invoke",
        "delegated_at": "2030-01-01T00:00:00Z",
    }


@pytest.mark.requirement("runtime:serial:own-call")
@pytest.mark.parametrize(
    ("holding", "nested", "at_once"),
    [
        ({"observability": {"trace_id": "t1"}}, {"observability": {"trace_id": "t1"}}, True),
        ({"observability": {"trace_id": "t1"}}, {"observability": {"trace_id": "t2"}}, False),
        ({}, {"delegation_chain": [_hop("agent:example:requester", "agent:example:requester")]}, True),
        ({}, {"delegation_chain": [_hop("agent:other", "agent:example:requester")]}, False),
        ({}, {}, False),
    ],
)
async def test_a_call_made_for_the_holder_fails_at_once(
    site: Site, holding: dict[str, Any], nested: dict[str, Any], at_once: bool
) -> None:
    provider = Provider(site)
    async with site.open() as runtime, asyncio.timeout(30):
        holder = asyncio.create_task(site.submit(runtime, action("session_chat", **holding)))
        held = await provider.next()
        inner = asyncio.create_task(site.submit(runtime, action("session_chat", **nested)))
        if at_once:
            async with asyncio.timeout(30):
                result = await inner
            assert error(result) == ("connector.scripted.session_busy", False, True)
        else:
            await site.clock.until_asleep(10)
        provider.answer(held)
        await holder
        if not at_once:
            provider.answer(await provider.next())
            assert (await inner).status == "completed"


@FILE_STORE
@pytest.mark.requirement("runtime:serial:hold")
@pytest.mark.parametrize("restart", [False, True])
async def test_an_uncertain_turn_keeps_its_session_closed_for_its_time(site: Site, restart: bool) -> None:
    turn, fork = action("session_chat"), action("session_fork", idempotency_key="F")
    site.connector.failures["send"] = ScriptedOutcomeUnknown("the answer was lost", uncertain=True)
    async with site.open() as runtime:
        assert (await site.submit(runtime, turn)).status == "failed"
        site.connector.failures.clear()
        if not restart:
            closed = await site.submit(runtime, fork)
    if restart:
        async with site.open() as runtime:
            closed = await site.submit(runtime, fork)
    assert error(closed) == ("connector.scripted.session_busy", False, True)
    assert closed.error is not None
    assert closed.error.retry_after_ms == 900_000
    assert closed.error.details == {
        "session_id": "s1",
        "reason": "closed_by_uncertain_turn",
        "previous_uncertain": turn.id,
        "closed_until": "2030-01-01T00:15:00Z",
    }
    async with site.open() as runtime:
        follower = await site.submit(runtime, action("session_chat"))
        assert follower.status == "completed"
        assert site.connector.sends[-1].previous_uncertain == turn.id
        assert (await site.submit(runtime, fork)).status == "failed"  # a later certain turn proves nothing
        site.clock.advance(900_000)
        assert (await site.submit(runtime, fork)).status == "completed"
        await site.submit(runtime, action("session_chat"))
        assert site.connector.sends[-1].previous_uncertain is None


async def test_an_exclusive_call_waits_for_a_session_that_opens_soon(site: Site) -> None:
    site.connector.hold_s = 5
    site.connector.failures["send"] = ScriptedOutcomeUnknown("lost", uncertain=True)
    async with site.open() as runtime, asyncio.timeout(30):
        await site.submit(runtime, action("session_chat"))
        site.connector.failures.clear()
        waiting = asyncio.create_task(site.submit(runtime, action("session_fork", idempotency_key="F")))
        await site.clock.until_asleep(5)
        site.clock.advance(5_000)
        assert (await waiting).status == "completed"


async def test_a_lock_is_given_back_whatever_way_an_action_ends(site: Site) -> None:
    async with site.open() as runtime:
        for failure in (ScriptedRejected("no"), ScriptedTemporary("down"), KeyError("a bug")):
            for step in ("prepare", "send"):
                site.connector.failures = {step: failure}
                await site.submit(runtime, action("session_chat"))
        site.connector.failures = {}
        assert (await site.submit(runtime, action("session_chat"))).status == "completed"
    assert [row for row in await site.rows("SELECT * FROM serial_locks") if row["holder_action"] is not None] == []


@pytest.mark.requirement("runtime:close:finishes-or-leaves")
async def test_a_client_that_hangs_up_stops_nothing(site: Site) -> None:
    provider = Provider(site)
    given = action("session_chat")
    async with site.open() as runtime, asyncio.timeout(30):
        client = asyncio.create_task(site.submit(runtime, given))
        call = await provider.next()
        client.cancel()
        await asyncio.wait((client,))
        provider.answer(call)
        again = await site.submit(runtime, given)
        assert (again.status, await runtime.result(given.id, requester())) == ("completed", again)


@pytest.mark.requirement("runtime:close:finishes-or-leaves")
async def test_closing_waits_a_little_and_leaves_the_rest_to_the_next_start(site: Site) -> None:
    provider = Provider(site)
    quick, slow = action("session_chat"), action("session_chat", input={"session_id": "s2", "message": "hi"})
    async with asyncio.timeout(30):
        async with site.open() as runtime:
            running = [asyncio.create_task(site.submit(runtime, given)) for given in (quick, slow)]
            calls = {str(call.action_id): call for call in (await provider.next(), await provider.next())}
            closing = asyncio.create_task(runtime.aclose())
            await site.clock.until_asleep(3)
            with pytest.raises(RequestRefused) as refused:
                await runtime.submit(action("session_chat"), requester(), MessageContext())
            assert refused.value.code == "runtime.stopping"
            provider.answer(calls[quick.id])
            assert (await running[0]).status == "completed"
            site.clock.advance(3_000)
            await closing
            await asyncio.wait((running[1],))
            assert running[1].cancelled()
        async with site.open() as runtime:
            assert (await runtime.result(quick.id, requester())).status == "completed"
            lost = await runtime.result(slow.id, requester())
    assert error(lost) == ("connector.scripted.outcome_unknown", True, False)


@FILE_STORE
async def test_one_data_folder_has_one_runtime(site: Site) -> None:
    async with site.open():
        with pytest.raises(AlreadyOwned):
            async with site.open():
                pass


async def test_health_names_store_and_endpoints(site: Site) -> None:
    async with site.open() as runtime:
        assert await runtime.health() == {
            "ready": True,
            "store": {"ready": True},
            "endpoints": {"primary": {"ready": True, "detail": "answers"}},
        }
