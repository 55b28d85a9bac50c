"""Keys, Action IDs and safe reads, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.runtime import Caller
from tests.support.runtime_connector import (
    ScriptedConnector,
    ScriptedCredential,
    ScriptedOutcomeUnknown,
    ScriptedRejected,
    ScriptedTemporary,
    capability,
)
from tests.support.runtime_site import READING, Site, action, caller, requester

WIDER = READING | {"action:read:any"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def code(result: wire.ActionResult) -> str | None:
    return result.error.code if result.error else None


def details(result: wire.ActionResult) -> dict[str, Any]:
    assert result.error is not None
    found: dict[str, Any] = result.error.details or {}
    return found


def output(result: wire.ActionResult) -> dict[str, Any]:
    assert isinstance(result.output, dict)
    return result.output


@pytest.mark.parametrize("key", [None, " "])
async def test_a_blank_optional_key_leaves_the_action_untracked(site: Site, key: str | None) -> None:
    async with site.open() as runtime:
        for _ in range(2):
            result = await site.submit(runtime, action("session_chat", idempotency_key=key))
            assert result.status == "completed"
    assert len(site.connector.sends) == 2


@pytest.mark.requirement("runtime:fence:replay-sends-nothing", "runtime:fence:replay-names-changed-input")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_settled_key_answers_its_original_result_and_sends_nothing(site: Site, restart: bool) -> None:
    first, same, changed = (
        action(idempotency_key="K1"),
        action(idempotency_key="K1"),
        action(idempotency_key="K1", input={"body": {"id": "s2"}}),
    )
    async with site.open() as runtime:
        original = await site.submit(runtime, first)
        steps = list(site.connector.steps)
        if not restart:
            replays = [await site.submit(runtime, same), await site.submit(runtime, changed)]
    if restart:
        async with site.open() as runtime:
            replays = [await site.submit(runtime, same), await site.submit(runtime, changed)]
    for replayed, differs in zip(replays, (False, True), strict=True):
        assert (replayed.action_id, replayed.status) == (first.id, "completed")
        assert output(replayed) == {
            **output(original),
            "_aip": {
                "replay": {
                    "original_action_id": first.id,
                    "first_seen_at": "2030-01-01T00:00:00Z",
                    "expires_at": "2030-01-02T00:00:00Z",
                    "input_differs": differs,
                }
            },
            "idempotent_replay": True,
        }
    # What reads nothing is prepared before the claim, which then finds the key.
    assert {step[0] for step in site.connector.steps[len(steps) :]} <= {"check", "prepare"}
    assert [row["action_id"] for row in await site.rows("SELECT action_id FROM actions")] == [first.id]


FAILURES: list[tuple[str, ActionFailed, bool]] = [
    ("send", ScriptedRejected("title in use"), False),
    ("send", ScriptedOutcomeUnknown("the answer was lost", uncertain=True), False),
    ("send", ScriptedTemporary("lost after sending", uncertain=True), False),
    ("send", ScriptedTemporary("connection refused"), True),
    ("send", ScriptedCredential("the key was refused"), True),
    ("send", ScriptedCredential("lost after sending", uncertain=True), False),
    ("prepare", ScriptedRejected("closed by compression"), False),
    ("prepare", ScriptedTemporary("endpoint down"), True),
]


@pytest.mark.requirement("runtime:result:failure-is-stored", "runtime:fence:errors-are-kept")
@pytest.mark.parametrize(("step", "failure", "frees"), FAILURES)
@pytest.mark.parametrize("operation", ["session_create", "session_fork"])
async def test_a_failure_is_stored_and_frees_the_key_only_when_another_attempt_is_safe(
    site: Site, operation: str, step: str, failure: ActionFailed, frees: bool
) -> None:
    site.connector.failures[step] = failure
    given = action(operation, idempotency_key="K")
    async with site.open() as runtime:
        result = await site.submit(runtime, given)
        assert (result.status, code(result)) == ("failed", failure.code)
        assert details(result).get("uncertain_outcome", False) is failure.uncertain
        assert await runtime.result(given.id, requester()) == result
        site.connector.failures.clear()
        sends = len(site.connector.sends)
        again = await site.submit(runtime, action(operation, idempotency_key="K"))
    if frees:
        assert again.status == "completed"
        assert len(site.connector.sends) == sends + 1
    else:
        assert again.error == result.error
        assert again.action_id == given.id
        assert output(again)["idempotent_replay"] is True
        assert len(site.connector.sends) == sends


@pytest.mark.requirement("runtime:fence:partition")
async def test_a_key_means_nothing_outside_its_capability_and_tenant(tmp_path: Path) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(tenant=None, endpoints=("a", "b")))

    async def call(operation: str, endpoint: str, tenant: str) -> wire.ActionResult:
        given = action(operation, capability_id=capability(operation, endpoint), idempotency_key="SAME")
        if operation == "session_patch":
            given = given.model_copy(update={"input": {"session_id": "s1", "title": "t"}})
        return await site.submit(runtime, given, requester(tenant=tenant))

    async with site.open() as runtime:
        first = await call("session_create", "a", "tenant-a")
        others = [
            await call("session_create", "b", "tenant-a"),
            await call("session_patch", "a", "tenant-a"),
            await call("session_create", "a", "tenant-b"),
        ]
        replayed = await call("session_create", "a", "tenant-a")
    assert [result.status for result in (first, *others)] == ["completed"] * 4
    assert len({result.action_id for result in (first, *others)}) == len(site.connector.sends) == 4
    assert replayed.action_id == first.action_id
    assert output(replayed)["idempotent_replay"] is True


@pytest.mark.requirement("runtime:fence:other-principal")
@pytest.mark.parametrize(
    ("by", "answered"),
    [
        (caller("agent:example:other"), False),
        (caller("agent:example:other", scopes=WIDER), True),
        (caller("agent:example:other", scopes=frozenset({"principal:read:any"})), True),
        (caller("agent:example:other", scopes=frozenset({"*"})), True),
        (caller("agent:example:other", scopes=frozenset({"approval:read:any"})), False),
    ],
)
async def test_another_principal_gets_a_result_only_when_it_may_read_the_action(
    site: Site, by: Caller, answered: bool
) -> None:
    first = action(idempotency_key="K")
    async with site.open() as runtime:
        await site.submit(runtime, first)
        result = await site.submit(runtime, action(idempotency_key="K"), by)
    assert code(result) == (None if answered else "idempotency.conflict")
    assert ("echo" in output(result)) if answered else result.output is None
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:fence:expiry")
async def test_a_settled_key_is_forgotten_when_its_time_has_passed(site: Site) -> None:
    async with site.open() as runtime:
        first = await site.submit(runtime, action(idempotency_key="K"))
        site.clock.advance(86_400_000 - 1)
        kept = await site.submit(runtime, action(idempotency_key="K"))
        site.clock.advance(1)
        anew = await site.submit(runtime, action(idempotency_key="K"))
    assert kept.action_id == first.action_id
    assert anew.action_id != first.action_id
    assert len(site.connector.sends) == 2


def gate(site: Site, end: Callable[[Call], Awaitable[Answer]] | None = None) -> tuple[asyncio.Event, asyncio.Event]:
    """Make the provider wait: (it has been reached, let it go on)."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def send(call: Call) -> Answer:
        entered.set()
        await release.wait()
        return await end(call) if end else Answer(output={"n": 1})

    site.connector.send = send
    return entered, release


@pytest.mark.requirement("runtime:fence:one-send")
@pytest.mark.parametrize("fails", [False, True])
async def test_twenty_submissions_of_one_key_make_one_send_and_twenty_equal_answers(site: Site, fails: bool) -> None:
    async def refuse(call: Call) -> Answer:
        raise ScriptedTemporary("connection refused")

    entered, release = gate(site, refuse if fails else None)
    async with site.open() as runtime, asyncio.timeout(30):
        given = [action(idempotency_key="K10") for _ in range(20)]
        running = [asyncio.create_task(site.submit(runtime, one)) for one in given]
        await entered.wait()
        await site.clock.until_asleep(10, number=19)
        release.set()
        results = await asyncio.gather(*running)
    assert len(site.connector.sends) == 1
    assert len({result.action_id for result in results}) == 1
    assert {result.status for result in results} == {"failed" if fails else "completed"}
    marked = [result for result in results if isinstance(result.output, dict) and "idempotent_replay" in result.output]
    assert len(marked) == 19


@pytest.mark.requirement("runtime:fence:wait-is-bounded")
@pytest.mark.parametrize("same_action", [True, False])
async def test_who_waits_too_long_for_a_key_is_told_who_has_it(site: Site, same_action: bool) -> None:
    entered, release = gate(site)
    first = action(idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(site.submit(runtime, first))
        await entered.wait()
        second = first if same_action else action(idempotency_key="K")
        waiting = asyncio.create_task(site.submit(runtime, second))
        await site.clock.until_asleep(10, number=1)
        site.clock.advance(10_000)
        told = await waiting
        release.set()
        await running
    assert told.error is not None
    assert (told.error.code, told.error.category, told.error.retryable) == (
        "idempotency.in_progress",
        "temporary",
        True,
    )
    assert told.error.retry_after_ms == 110_000
    expected = {"owner_action_id": first.id, "reservation_expires_at": "2030-01-01T00:02:00Z"}
    assert details(told) == (expected if same_action else {**expected, "key": "K"})
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:duplicate:stored-result")
@pytest.mark.parametrize("operation", ["session_create", "session_chat", "session_get"])
async def test_the_same_submission_gets_its_stored_result_as_it_is(site: Site, operation: str) -> None:
    key = "K" if operation == "session_create" else None
    given = action(operation, idempotency_key=key)
    async with site.open() as runtime:
        first = await site.submit(runtime, given)
        again = await site.submit(runtime, given)
    assert again == first
    assert len(site.connector.sends) == 1


async def test_the_same_submission_while_it_runs_gets_the_same_answer(site: Site) -> None:
    entered, release = gate(site)
    given = action("session_chat")
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(site.submit(runtime, given))
        await entered.wait()
        assert (await runtime.status(given.id, requester())).state == "running"
        again = asyncio.create_task(site.submit(runtime, given))
        await site.clock.until_asleep(10, number=1)
        release.set()
        assert await running == await again
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:duplicate:conflict")
@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({"input": {"body": {"id": "s2"}}}, requester()),
        ({"idempotency_key": "K2"}, requester()),
        ({}, caller("agent:example:other", scopes=frozenset({"*"}))),
        ({}, caller("human:example:requester")),
    ],
)
async def test_an_action_id_with_other_content_or_principal_is_refused(
    site: Site, changes: dict[str, Any], by: Caller
) -> None:
    given = action(idempotency_key="K")
    async with site.open() as runtime:
        await site.submit(runtime, given)
        with pytest.raises(RequestRefused) as refused:
            await site.submit(runtime, given.model_copy(update=changes), by)
    assert refused.value.code == "action.id_conflict"
    assert refused.value.details["existing_principal_id"] == "agent:example:requester"
    assert len(site.connector.sends) == 1


async def test_two_tenants_may_use_one_action_id(tmp_path: Path) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(tenant=None))
    given = action("session_chat")
    async with site.open() as runtime:
        for tenant in ("tenant-a", "tenant-b", None):
            assert (await site.submit(runtime, given, requester(tenant=tenant))).status == "completed"
    assert len(site.connector.sends) == 3


@pytest.mark.requirement("runtime:duplicate:next-attempt")
@pytest.mark.parametrize("operation", ["session_create", "session_chat", "session_get"])
async def test_a_failure_that_frees_its_key_lets_the_action_try_again(site: Site, operation: str) -> None:
    given = action(operation, idempotency_key="K")
    async with site.open() as runtime:
        site.connector.failures["send"] = ScriptedTemporary("connection refused")
        assert (await site.submit(runtime, given)).status == "failed"
        site.connector.failures.clear()
        second = await site.submit(runtime, given)
        third = await site.submit(runtime, given)
    assert second.status == "completed"
    assert third == second
    assert [call.attempt for call in site.connector.sends] == ([1, 1] if operation == "session_get" else [1, 2])
    events = await site.rows("SELECT event FROM events WHERE kind = 'aip.action.result' ORDER BY seq")
    assert len(events) == 2


@pytest.mark.requirement("runtime:duplicate:next-attempt")
@pytest.mark.parametrize("failure", [ScriptedRejected("no"), ScriptedTemporary("lost", uncertain=True)])
async def test_a_failure_that_keeps_its_key_binds_the_action(site: Site, failure: ActionFailed) -> None:
    given = action("session_chat")
    site.connector.failures["send"] = failure
    async with site.open() as runtime:
        first = await site.submit(runtime, given)
        site.connector.failures.clear()
        assert await site.submit(runtime, given) == first
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:read:one-transaction")
async def test_of_two_equal_reads_the_first_to_settle_answers_both(site: Site) -> None:
    both, release = asyncio.Event(), asyncio.Event()

    async def number(call: Call) -> Answer:
        mine = len(site.connector.sends)
        if mine == 2:
            both.set()
        await release.wait()
        return Answer(output={"n": mine})

    site.connector.send = number
    given = action("session_get")
    async with site.open() as runtime, asyncio.timeout(30):
        running = [asyncio.create_task(site.submit(runtime, given)) for _ in range(2)]
        await both.wait()
        assert (await runtime.status(given.id, requester())).state == "unknown"
        release.set()
        one, other = await asyncio.gather(*running)
    assert one == other
    assert "after_claim" not in site.faults.reached
    assert "after_intent" not in site.faults.reached


@pytest.mark.requirement("runtime:store:no-input-kept")
async def test_events_and_audit_hold_no_input_and_no_output(site: Site) -> None:
    site.connector.facts = {"rows": 4}
    given = action("session_chat", input={"session_id": "s1", "message": "a very private question"})
    async with site.open() as runtime:
        await site.submit(runtime, given)
    (row,) = await site.rows("SELECT * FROM actions")
    result = row.pop("result")
    assert "a very private question" in result
    assert row["facts"] == '{"rows":4}'
    kept = [row, *await site.rows("SELECT event FROM events"), *await site.rows("SELECT record FROM audit")]
    assert len(kept) == 3
    assert "private" not in str(kept)
