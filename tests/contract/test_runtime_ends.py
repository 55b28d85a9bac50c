"""Whatever a provider, a connector, the store or the clock does: an action ends, and its key and session are free."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.database import StoreUnavailable
from aip_hermes.runtime.storable import LEVELS_AROUND
from tests.support.runtime_connector import ScriptedOutcomeUnknown, ScriptedRejected
from tests.support.runtime_site import Site, action, approval_request, decision, requester, reviewer


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        yield Site(tmp_path)


def error(result: wire.ActionResult) -> tuple[str, bool, bool | None]:
    """(code, uncertain, retryable)"""
    assert result.error is not None
    details: Mapping[str, Any] = result.error.details or {}
    return result.error.code, details.get("uncertain_outcome", False), result.error.retryable


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


UNSTORABLE = {
    "an infinite number": float("inf"),
    "no number": float("nan"),
    "more digits than a reader takes": 10**400,
    "too deep for our reader": nested(wire.MAX_DEPTH - LEVELS_AROUND),
    "too deep for a validator": nested(400),
    "too deep for the interpreter": nested(100_000),
    "no JSON": {1, 2},
}


@pytest.mark.requirement("runtime:result:storable")
@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
@pytest.mark.parametrize(
    ("operation", "uncertain"), [("session_chat", True), ("session_create", True), ("session_get", False)]
)
async def test_an_answer_that_cannot_be_kept_ends_its_action_all_the_same(
    site: Site, operation: str, uncertain: bool, value: Any
) -> None:
    async def send(call: Call) -> Answer:
        return Answer(output={"value": value})

    site.connector.send = send
    given = action(operation, idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        result = await site.submit(runtime, given)
        status = await runtime.status(given.id, requester())
        stored = await runtime.result(given.id, requester())
        by_key = await site.submit(runtime, action(operation, idempotency_key="K"))
        wire.read_json(wire.write_json(stored.wire()))
    assert result.error is not None
    assert error(result)[1:] == (uncertain, False)
    assert error(result)[0] in {"action.output_schema_invalid", "connector.runtime_failure"}
    assert (status.state, stored, by_key.error) == ("failed", result, result.error)
    assert len(site.connector.sends) == 1
    assert await site.rows("SELECT 1 FROM serial_locks WHERE holder_action IS NOT NULL") == []


@pytest.mark.requirement("runtime:result:storable", "runtime:result:not-kept")
@pytest.mark.parametrize(
    ("fails", "uncertain", "then"),
    [(None, True, "reconcile the action"), (ScriptedRejected("poison"), False, "send it again")],
)
async def test_an_end_that_the_store_does_not_take_is_told_with_what_to_do(
    site: Site, fails: Exception | None, uncertain: bool, then: str
) -> None:
    async def send(call: Call) -> Answer:
        if fails is not None:
            raise fails
        return Answer(output={"value": "poison"})

    site.connector.send = send
    given = action("session_chat", idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        await site.edit(
            "CREATE TRIGGER refusing BEFORE UPDATE ON actions WHEN NEW.result LIKE '%poison%' "
            "BEGIN SELECT RAISE(ABORT, 'poison'); END"
        )
        result = await site.submit(runtime, given)
        stored = await runtime.result(given.id, requester())
    assert error(result) == ("connector.runtime_failure", uncertain, False)
    assert result.error is not None
    assert result.error.details is not None
    assert (result.error.details["action_id"], result.error.details["capability_id"]) == (given.id, given.capability_id)
    # The next step is the sentence itself: no code says it.
    assert then in result.error.message
    assert stored == result


@pytest.mark.requirement("runtime:result:storable")
async def test_the_deepest_answer_that_is_kept_can_be_read(site: Site) -> None:
    async def send(call: Call) -> Answer:
        return Answer(output={"value": nested(wire.MAX_DEPTH - LEVELS_AROUND - 1)})

    site.connector.send = send
    async with site.open() as runtime:
        result = await site.submit(runtime, action("session_create", idempotency_key="K"))
        replayed = await site.submit(runtime, action("session_create", idempotency_key="K"))
    assert result.status == replayed.status == "completed"
    around = [{"body": {"results": [replayed.wire()]}}]
    assert wire.read_json(wire.write_json(around)) == around


@pytest.mark.requirement("runtime:result:storable")
@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
@pytest.mark.parametrize("uncertain", [False, True])
async def test_a_failure_whose_details_cannot_be_kept_keeps_its_code_and_certainty(
    site: Site, value: Any, uncertain: bool
) -> None:
    site.connector.failures["send"] = ScriptedRejected(
        "no", details={"read": value}, output={"read": value}, uncertain=uncertain
    )
    async with site.open() as runtime:
        result = await site.submit(runtime, action("session_chat", idempotency_key="K"))
    assert error(result) == ("connector.scripted.rejected", uncertain, False)


@pytest.mark.requirement("runtime:result:storable")
@pytest.mark.parametrize("value", [float("inf"), nested(100_000), {1, 2}], ids=["infinite", "deep", "no JSON"])
@pytest.mark.parametrize("operation", ["session_chat", "session_create"])
async def test_facts_that_cannot_be_kept_fail_before_anything_is_sent(site: Site, operation: str, value: Any) -> None:
    site.connector.facts = {"row": value}
    async with site.open() as runtime:
        result = await site.submit(runtime, action(operation, idempotency_key="K"))
    assert error(result) == ("connector.runtime_failure", False, False)
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:fence:every-exit-settles")
@pytest.mark.parametrize("value", [float("inf"), nested(100_000), {1, 2}], ids=["infinite", "deep", "no JSON"])
async def test_a_target_that_cannot_be_frozen_asks_no_approval(site: Site, value: Any) -> None:
    site.connector.snapshot = {"started_at": value}
    given = action("session_delete", idempotency_key="K")
    async with site.open() as runtime:
        result = await site.submit(runtime, given)
        by_key = await site.submit(runtime, action("session_delete", idempotency_key="K"))
        status = await runtime.status(given.id, requester())
    assert error(result) == ("connector.runtime_failure", False, False)
    assert (by_key.error, status.state) == (result.error, "failed")
    assert await site.rows("SELECT approval_id FROM approvals") == []


@pytest.mark.requirement("runtime:fence:every-exit-settles")
async def test_an_approval_that_could_not_be_recorded_is_a_certain_failure(site: Site) -> None:
    given = action("session_delete", idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        await runtime.status(given.id, requester())
        trigger = "CREATE TRIGGER refuse BEFORE INSERT ON approvals BEGIN SELECT json('disk is full'); END"
        with sqlite3.connect(site.path) as raw:
            raw.execute(trigger)
        raw.close()
        result = await site.submit(runtime, given)
        with sqlite3.connect(site.path) as raw:
            raw.execute("DROP TRIGGER refuse")
        raw.close()
        assert error(result) == ("runtime.interrupted", False, True)
        again = await site.submit(runtime, given)
        assert again.status == "pending_approval"
        await runtime.decide(decision(approval_request(again)), reviewer())
        assert (await runtime.result(given.id, requester())).status == "completed"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:result:deadline")
async def test_time_that_is_over_before_the_intent_sends_nothing(site: Site) -> None:
    async def passes(point: str) -> None:
        if point == "after_prepare":
            site.clock.advance(5_000)

    site.faults.reach = passes  # type: ignore[method-assign]
    async with site.open() as runtime:
        result = await site.submit(runtime, action("session_chat", timeout_ms=5_000))
    assert error(result) == ("sla.timeout_exceeded", False, True)
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:result:deadline")
async def test_a_clock_that_is_set_back_gives_nobody_more_time(site: Site) -> None:
    entered = asyncio.Event()

    async def never(call: Call) -> Answer:
        site.clock.advance(-3_600_000)
        entered.set()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        return await answer

    async def back(point: str) -> None:
        if point == "after_prepare":
            site.clock.advance(-3_600_000)

    site.faults.reach = back  # type: ignore[method-assign]
    site.connector.send = never
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(site.submit(runtime, action("session_chat", timeout_ms=5_000)))
        await entered.wait()
        site.clock.advance(3_600_000 + 6_000)
        assert error(await running) == ("sla.timeout_exceeded", True, False)


@pytest.mark.requirement("runtime:result:confirm-adds-only")
@pytest.mark.parametrize("uncertain", [False, True])
async def test_reading_back_makes_no_failure_more_or_less_certain(site: Site, uncertain: bool) -> None:
    site.connector.failures["send"] = ScriptedOutcomeUnknown("lost", uncertain=uncertain)
    site.connector.confirm = lambda _: ScriptedOutcomeUnknown("found", uncertain=not uncertain)
    async with site.open() as runtime:
        result = await site.submit(runtime, action("session_fork", idempotency_key="K"))
    assert error(result) == ("connector.scripted.outcome_unknown", uncertain, False)


@pytest.mark.requirement("runtime:result:handler-fault")
@pytest.mark.parametrize("operation", ["session_create", "session_chat"])
async def test_a_store_that_fails_while_sending_does_not_make_the_outcome_certain(site: Site, operation: str) -> None:
    site.connector.failures["send"] = StoreUnavailable("no room for a chunk", kind="disk_full")
    async with site.open() as runtime:
        result = await site.submit(runtime, action(operation, idempotency_key="K"))
    assert error(result) == ("connector.runtime_failure", True, False)
