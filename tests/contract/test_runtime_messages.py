"""The id of a message that brings an action: taken once, with the action, however that ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import MessageId
from aip_hermes.runtime import MessageContext, Runtime
from aip_hermes.runtime.caller import Arrival
from tests.support.runtime_connector import ScriptedTemporary
from tests.support.runtime_site import Crash, CrashAt, Site, action, requester


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def sent(site: Site, runtime: Runtime, given: wire.Action, message_id: str = "msg_1") -> wire.ActionResult:
    arrival = Arrival(message_id=MessageId(message_id), sent_at_ms=site.clock.now_ms())
    result = await runtime.submit(given, requester(), MessageContext(arrival=arrival))
    assert isinstance(result, wire.ActionResult)
    return result


async def refused(site: Site, runtime: Runtime, given: wire.Action) -> None:
    with pytest.raises(RequestRefused) as caught:
        await sent(site, runtime, given)
    assert caught.value.code == "replay.message_id"


@pytest.mark.requirement("runtime:message:once", "runtime:message:with-its-action")
@pytest.mark.parametrize("operation", ["session_get", "session_chat", "session_create"])
async def test_a_message_that_brought_an_action_is_used_up_also_after_a_restart(site: Site, operation: str) -> None:
    async with site.open() as runtime:
        assert (await sent(site, runtime, action(operation, idempotency_key="K"))).status == "completed"
        await refused(site, runtime, action(operation, idempotency_key="K2"))
    async with site.open() as runtime:
        await refused(site, runtime, action(operation, idempotency_key="K3"))
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:message:with-its-action")
@pytest.mark.parametrize(
    "bad", [{"input": {"body": {"id": 5}}}, {"capability_id": "cap:hermes_agent:primary:none"}, {"mode": "streaming"}]
)
async def test_a_message_whose_action_is_refused_is_used_up(site: Site, bad: dict[str, object]) -> None:
    given = action("session_create", idempotency_key="K")
    async with site.open() as runtime:
        try:
            code = getattr((await sent(site, runtime, given.model_copy(update=bad))).error, "code", None)
        except RequestRefused as error:
            code = error.code
        assert code not in (None, "replay.message_id")
        await refused(site, runtime, given)
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:message:with-its-action")
@pytest.mark.parametrize("operation", ["session_get", "session_chat"])
async def test_of_one_message_that_comes_twice_at_once_one_is_refused(site: Site, operation: str) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def wait(_call: Call) -> Answer:
        entered.set()
        await release.wait()
        return Answer(output={"n": 1})

    site.connector.send = wait
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(sent(site, runtime, action(operation)))
        await entered.wait()
        await refused(site, runtime, action(operation))
        release.set()
        assert (await running).status == "completed"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:message:with-its-action")
async def test_a_repeat_under_a_new_message_is_answered_and_uses_that_up_too(site: Site) -> None:
    given = action("session_chat")
    async with site.open() as runtime:
        first = await sent(site, runtime, given)
        assert await sent(site, runtime, given, "msg_2") == first
        with pytest.raises(RequestRefused):
            await sent(site, runtime, given, "msg_2")
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:message:with-its-action")
async def test_a_failed_action_does_not_give_its_message_back(site: Site) -> None:
    site.connector.failures["send"] = ScriptedTemporary("connection refused")
    async with site.open() as runtime:
        given = action("session_chat")
        assert (await sent(site, runtime, given)).status == "failed"
        await refused(site, runtime, given)


@pytest.mark.requirement("runtime:message:with-its-action")
@pytest.mark.parametrize(("operation", "free"), [("session_get", True), ("session_chat", False)])
async def test_a_crash_before_the_answer_frees_the_message_of_a_safe_read_only(
    tmp_path: Path, operation: str, free: bool
) -> None:
    site = Site(tmp_path, faults=CrashAt("after_answer"))
    given = action(operation)
    with pytest.raises(Crash):
        async with site.open() as runtime:
            await sent(site, runtime, given)
    async with site.open() as runtime:
        if free:
            assert (await sent(site, runtime, given)).status == "completed"
        else:
            await refused(site, runtime, given)
