"""Failures of a real hermes-agent, and what is told of them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import outcome_of
from tests.real.model import Answer
from tests.real.site import Site
from tests.support.reconcile_site import losing

pytestmark = pytest.mark.real

OURS, CERTAIN = "connector.hermes_agent.", "connector_failed"
REJECTED, TEMPORARY = f"{OURS}remote_rejected", f"{OURS}remote_temporary"
LONG = "x" * 10_000_001

REFUSALS = [
    ("session_get", {"session_id": "MARK-nobody"}, 404, "session_not_found", CERTAIN),
    ("session_messages", {"session_id": "MARK-nobody"}, 404, "session_not_found", CERTAIN),
    ("session_patch", {"session_id": "MARK-nobody", "title": "MARK x"}, 404, "session_not_found", CERTAIN),
    ("session_fork", {"session_id": "MARK-nobody", "body": {"id": "MARK-x"}}, 404, "session_not_found", CERTAIN),
    ("session_chat", {"session_id": "MARK-nobody", "message": "hello"}, 404, "session_not_found", CERTAIN),
    ("session_chat_stream", {"session_id": "MARK-nobody", "message": "hello"}, 404, "session_not_found", CERTAIN),
    ("session_create", {"body": {"id": "MARK-s"}}, 409, "session_exists", CERTAIN),
    ("session_create", {"body": {"id": "MARK-n", "title": "MARK taken"}}, 400, "invalid_title", CERTAIN),
    ("session_patch", {"session_id": "MARK-s", "title": "MARK taken"}, 400, "invalid_title", CERTAIN),
    ("session_fork", {"session_id": "MARK-s", "body": {"id": "MARK-other"}}, 409, "session_exists", CERTAIN),
    ("response_get", {"response_id": "resp_nobody"}, 404, None, CERTAIN),
    ("run_status", {"run_id": "run_nobody"}, 404, "run_not_found", CERTAIN),
    ("run_events", {"run_id": "run_nobody"}, 404, "run_not_found", CERTAIN),
    ("job_get", {"job_id": "0ddaaccff246"}, 404, None, CERTAIN),
    ("session_chat", {"session_id": "MARK-s", "message": LONG}, 413, "body_too_large", CERTAIN),
    ("job_create", {"name": "MARK", "schedule": "sometimes", "prompt": "Say it."}, 500, None, "uncertain"),
]
"""Operation, input, what the endpoint answers, and what an action is then. MARK: the test's own."""


def _marked(value: Any, mark: str) -> Any:
    if isinstance(value, dict):
        return {name: _marked(each, mark) for name, each in value.items()}
    return value.replace("MARK", mark) if isinstance(value, str) else value


@pytest.mark.requirement("real:failures")
@pytest.mark.parametrize(
    ("operation", "values", "status", "code", "outcome"),
    REFUSALS,
    ids=[f"{row[0]}-{row[2]}-{number}" for number, row in enumerate(REFUSALS)],
)
async def test_a_refusal_is_told_with_its_own_code_and_as_certain_as_it_is(
    operation: str, values: dict[str, Any], status: int, code: str | None, outcome: str, site: Site
) -> None:
    mark = site.rows.mark
    await site.rows.create(f"{mark}-s")
    await site.rows.create(f"{mark}-other", title=f"{mark} taken")
    result = await site.act(operation, _marked(values, mark))
    assert result.error is not None, result.wire()
    assert result.error.code == (TEMPORARY if status >= 500 else REJECTED)
    assert result.error.details is not None
    assert (result.error.details["provider"]["status"], result.error.details["provider"]["code"]) == (status, code)
    assert outcome_of(result.wire()) == outcome
    source = await site.rows.row(f"{mark}-s")
    assert source is not None
    assert (source["title"], source["ended_at"], source["message_count"]) == (None, None, 0)


@pytest.mark.requirement("real:failures")
async def test_a_key_that_is_refused_is_told_and_nothing_is_there(site: Site, tmp_path: Path) -> None:
    async with losing(tmp_path / "other", site.hermes.url, key="another-key-of-enough-characters") as other:
        result = await other.act("session_create", {"body": {"id": site.named("new")}})
    assert result.error is not None
    assert (result.error.code, outcome_of(result.wire())) == (f"{OURS}authentication", CERTAIN)
    assert await site.rows.row(site.named("new")) is None


@pytest.mark.requirement("real:failures")
async def test_one_run_too_many_is_certain_and_may_be_tried_again(site: Site) -> None:
    model, gate = site.hermes.model, threading.Event()
    model.next.extend([Answer(text="First.", until=gate), Answer(text="Second.", until=gate)])
    try:
        runs = [(await site.output("run_start", input="Wait."))["run_id"] for _ in range(2)]
        for _ in runs:
            assert await asyncio.to_thread(model.waiting.acquire, timeout=30)
        refused = await site.act("run_start", {"input": "One too many."})
    finally:
        gate.set()
    assert refused.error is not None
    assert refused.error.details is not None
    assert (refused.error.code, outcome_of(refused.wire())) == (TEMPORARY, CERTAIN)
    assert refused.error.retryable is True
    assert refused.error.details["provider"]["code"] == "rate_limit_exceeded"
    for run in runs:
        await site.reached(run, "completed")
    later = await site.output("run_start", session_id=site.named("later"), input="Now.")
    await site.reached(later["run_id"], "completed")


@pytest.mark.requirement("real:model-fails")
@pytest.mark.parametrize("status", [500, 503, 400, 401])
@pytest.mark.parametrize("operation", ["session_chat", "session_chat_stream"])
async def test_a_turn_whose_model_failed_is_not_told_as_stored(operation: str, status: int, site: Site) -> None:
    await site.rows.create(site.named("s"))
    site.hermes.model.next.append(Answer(status=status))
    result = await site.output(operation, session_id=site.named("s"), message="What is verified?")
    turn = result["_aip"]["turn"]
    assert (turn["messages_before"], turn["messages_after"], turn["persisted"]) == (0, 1, "user_only")
    assert turn["warning"]
    assert not site.hermes.model.next
    _, rows = await site.rows.messages(site.named("s"))
    assert [row["role"] for row in rows] == ["user"]


@pytest.mark.requirement("real:model-fails")
async def test_a_run_whose_model_failed_is_told_as_failed(site: Site) -> None:
    site.hermes.model.next.append(Answer(status=500))
    run = (await site.output("run_start", session_id=site.named("r"), input="Try."))["run_id"]
    await site.reached(run, "failed")
    assert (await site.output("run_status", run_id=run))["status"] == "failed"


@pytest.mark.requirement("real:model-fails")
async def test_a_turn_whose_model_broke_off_goes_on_and_is_stored(site: Site) -> None:
    await site.rows.create(site.named("s"))
    site.hermes.model.next.extend(
        [Answer(text="A first half that breaks off here.", cut=True), Answer(text="The rest.")]
    )
    result = await site.output("session_chat", session_id=site.named("s"), message="Tell.")
    assert result["_aip"]["turn"]["persisted"] == "yes"
    _, rows = await site.rows.messages(site.named("s"))
    assert rows[-1]["content"].endswith("The rest.")
    assert not site.hermes.model.next
