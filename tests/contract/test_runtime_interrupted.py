"""Actions that a process left after their intent, and whose handlers can look what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime import MessageContext, Runtime
from tests.support.runtime_connector import ScriptedOutcomeUnknown, ScriptedRejected
from tests.support.runtime_site import Crash, Site, action, approval_request, decision, requester, reviewer

LOST = "connector.scripted.outcome_unknown"
POINTS = ("after_intent", "after_send", "after_answer", "before_settle")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        site = Site(tmp_path)
        site.connector.observing = frozenset({"session_chat", "session_create", "session_delete"})
        site.connector.queueing = frozenset({"session_chat"})

        async def seen(call: Call) -> Answer:
            return Answer(output={"seen": True})

        site.connector.observe = seen
        yield site


async def crash(site: Site, given: wire.Action, point: str) -> None:
    site.faults.point = point
    async with site.open() as runtime:
        with pytest.raises(Crash):
            await site.submit(runtime, given)


async def end_of(runtime: Runtime, action_id: str) -> wire.ActionResult:
    """Wait for the end of an action that goes on since the start."""
    async with asyncio.timeout(30):
        async with runtime.watching(action_id, requester()) as changed:
            while True:
                changed.clear()
                status = await runtime.status(action_id, requester(), include_result=True)
                if status.result is not None:
                    return status.result
                await changed.wait()


@pytest.mark.requirement("runtime:interrupted:observed")
@pytest.mark.parametrize("operation", ["session_chat", "session_create"])
@pytest.mark.parametrize("point", POINTS)
async def test_an_interrupted_action_is_looked_at_and_ends_as_it_is_found(
    site: Site, operation: str, point: str
) -> None:
    if operation == "session_create" and point == "after_intent":
        point = "after_claim"  # claim and intent are one commit there
    given = action(operation, idempotency_key="K")
    await crash(site, given, point)
    sends, prepared = len(site.connector.sends), site.connector.seen("prepare")
    async with site.open() as runtime:
        result = await end_of(runtime, given.id)
        assert (result.status, result.output) == ("completed", {"seen": True})
        assert (len(site.connector.sends), site.connector.seen("prepare")) == (sends, prepared)
        again = await site.submit(runtime, action(operation, idempotency_key="K"))
        assert again.action_id == given.id
    (observed,) = site.connector.observed
    assert (observed.action_id, observed.interrupted, observed.attempt) == (given.id, True, 1)
    assert observed.input == given.input
    assert len(site.connector.sends) == sends
    (row,) = await site.rows("SELECT parked FROM actions")
    assert row["parked"] is None


@pytest.mark.requirement("runtime:interrupted:observed")
async def test_looking_that_is_interrupted_too_is_looked_at_again(site: Site) -> None:
    given = action("session_chat")
    await crash(site, given, "after_send")
    for _ in range(3):
        gone = asyncio.Event()

        async def dies(point: str, gone: asyncio.Event = gone) -> None:
            if point == "after_answer":
                gone.set()
                raise Crash(point)

        site.faults.reach = dies  # type: ignore[method-assign]
        async with site.open(), asyncio.timeout(30):
            await gone.wait()
    del site.faults.reach
    async with site.open() as runtime:
        assert (await end_of(runtime, given.id)).status == "completed"
    assert (len(site.connector.sends), len(site.connector.observed)) == (1, 4)


@pytest.mark.requirement("runtime:interrupted:observed")
@pytest.mark.parametrize(
    ("failure", "code", "uncertain"),
    [
        (ScriptedOutcomeUnknown("the run is not known", uncertain=True), LOST, True),
        (ScriptedRejected("it never began"), "connector.scripted.rejected", None),
    ],
)
async def test_the_handler_alone_says_how_certain_its_finding_is(
    site: Site, failure: ActionFailed, code: str, uncertain: bool | None
) -> None:
    given = action("session_chat")
    await crash(site, given, "after_send")
    site.connector.failures["observe"] = failure
    async with site.open() as runtime:
        result = await end_of(runtime, given.id)
    assert result.error is not None
    assert (result.error.code, (result.error.details or {}).get("uncertain_outcome")) == (code, uncertain)


@pytest.mark.requirement("runtime:interrupted:observed")
async def test_an_interrupted_action_of_the_queue_is_looked_at(site: Site) -> None:
    given = action("session_chat", mode="async")
    gone = asyncio.Event()

    async def dies(point: str) -> None:
        if point == "after_send":
            gone.set()
            raise Crash(point)

    site.faults.reach = dies  # type: ignore[method-assign]
    async with site.open() as runtime, asyncio.timeout(30):
        await runtime.submit(given, requester(), MessageContext())
        await gone.wait()
    del site.faults.reach
    async with site.open() as runtime:
        assert (await end_of(runtime, given.id)).output == {"seen": True}
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:interrupted:observed")
async def test_an_interrupted_action_that_was_approved_is_looked_at_and_tells_its_approval(site: Site) -> None:
    given = action("session_delete", idempotency_key="D")
    async with site.open() as runtime:
        request = approval_request(await site.submit(runtime, given))
        site.faults.point = "after_send"
        with pytest.raises(Crash):
            await runtime.decide(decision(request), reviewer())
    async with site.open() as runtime, asyncio.timeout(30):
        stream = await runtime.decide(decision(request), reviewer())
        assert [event.kind for event in stream.events] == ["aip.approval.granted", "aip.action.resumed_result"]
        assert (await runtime.result(given.id, requester())).output == {"seen": True}
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:interrupted:never-certain-by-accident")
@pytest.mark.parametrize("obstacle", ["withdrawn", "check", "unreadable", "connector gone", "handler broken"])
async def test_what_cannot_be_looked_at_ends_uncertain(site: Site, obstacle: str) -> None:
    given = action("session_chat")
    await crash(site, given, "after_send")
    code = LOST
    if obstacle == "withdrawn":
        site.connector.operations = ("session_get",)
    elif obstacle == "check":
        site.connector.failures["check"] = ScriptedRejected("no longer allowed")
    elif obstacle == "unreadable":
        await site.edit("UPDATE actions SET parked = '{}'")
    elif obstacle == "connector gone":
        site.connector.operations = ()
        await site.edit("UPDATE actions SET connector_id = 'gone'")
        code = "runtime.outcome_unknown"
    else:
        site.connector.failures["observe"] = RuntimeError("not declared")
        code = "connector.runtime_failure"
    async with site.open() as runtime:
        result = await end_of(runtime, given.id)
    assert result.error is not None
    assert result.error.code == code
    assert result.error.details
    assert result.error.details["uncertain_outcome"] is True
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:interrupted:never-certain-by-accident")
async def test_cancelling_what_is_being_looked_at_is_uncertain(site: Site) -> None:
    site.connector.queueing, site.connector.streaming = frozenset(), frozenset({"session_chat"})
    given = action("session_chat")
    await crash(site, given, "after_send")
    looking = asyncio.Event()

    async def looks(call: Call) -> Answer:
        looking.set()
        forever: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        return await forever

    site.connector.observe = looks
    async with site.open() as runtime, asyncio.timeout(30):
        await looking.wait()
        result = await runtime.cancel(given.id, requester(scopes=frozenset({"action:read", "action:write"})))
    assert result.status == "cancelled"
    assert result.error is not None
    assert result.error.details
    assert result.error.details["uncertain_outcome"] is True


@pytest.mark.requirement("runtime:interrupted:session-kept")
async def test_nobody_comes_between_an_interrupted_turn_and_its_session(site: Site) -> None:
    given = action("session_chat")
    await crash(site, given, "after_send")
    ask, told = asyncio.Event(), asyncio.Event()

    async def looks(call: Call) -> Answer:
        ask.set()
        await told.wait()
        return Answer(output={"seen": True})

    site.connector.observe = looks
    async with site.open() as runtime, asyncio.timeout(30):
        fork = asyncio.create_task(site.submit(runtime, action("session_fork", idempotency_key="F")))
        await ask.wait()
        assert site.connector.sends == site.connector.sends[:1]
        told.set()
        assert (await fork).status == "completed"
    assert [name for name, _ in site.connector.steps if name in ("send", "observe")] == ["send", "observe", "send"]
