"""What an approval is about, read, kept and compared as capabilities.yaml says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.rows import load_target
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes import session_evidence
from aip_hermes.hermes.answered import failed_by_its_word, text_of
from tests.support.hermes_calls import INPUTS, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import COMPLETION, JOB, RESPONSE, RUN, StubEndpoint, reply_json, row_of

_APPROVED = {name: row for name, row in load_operations().items() if row.target is not None}
_OBJECTS: Mapping[str, tuple[str | None, Mapping[str, Any]]] = {
    "session": ("session", row_of("s1", title="Plans")),
    "response": (None, RESPONSE),
    "run": (None, RUN),
    "waiting_run": (None, RUN),
    "job": ("job", JOB),
}
_PRIVATE = ("Nightly", "Summarise", "Plans", "Echo")


class _Target(httpx.MockTransport):
    """Answers every GET with one object. asked: method and path of each request."""

    def __init__(self, target: str) -> None:
        self.member, found = _OBJECTS[target]
        self.found = dict(found)
        self.asked: list[str] = []
        super().__init__(self._serve)

    def _serve(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        return httpx.Response(200, json=self.found if self.member is None else {self.member: self.found})


@pytest.mark.requirement("hermes:describe:target")
@pytest.mark.parametrize("name", _APPROVED)
async def test_a_target_is_described_by_what_its_row_keeps(name: str) -> None:
    row = _APPROVED[name]
    assert row.target is not None
    target = load_target(row.target)
    transport = _Target(row.target)
    async with connector_of(endpoint_of(), transport=transport) as connector:
        description = await handler_of(connector, name).describe(call_of(name))
    ids = {key: value for key, value in INPUTS[name].items() if key.endswith("_id")}
    assert transport.asked == [f"GET {target.path.format(**ids)}"]
    assert description is not None
    expected = [*ids, *target.kept, *(f"{member}_sha256" for member in target.hashed)]
    assert sorted(description.snapshot) == sorted(set(expected))
    assert all(
        description.snapshot[member] == transport.found.get(member) for member in target.kept if member not in ids
    )
    told = description.summary + json.dumps(description.snapshot)
    assert not any(word in told for word in _PRIVATE)
    for part in (row.title, "endpoint primary", *(f"`{value}`" for value in ids.values())):
        assert part in description.summary
    assert len(description.summary) < 400


@pytest.mark.requirement("hermes:prepare:target-changed")
@pytest.mark.parametrize(
    ("name", "member"), [(name, member) for name, row in _APPROVED.items() for member in _OBJECTS[str(row.target)][1]]
)
async def test_a_change_of_a_compared_member_and_of_no_other_stops_what_was_approved(name: str, member: str) -> None:
    target_name = str(_APPROVED[name].target)
    target, transport = load_target(target_name), _Target(target_name)
    async with connector_of(endpoint_of(), transport=transport) as connector:
        handler, call = handler_of(connector, name), call_of(name)
        described = await handler.describe(call)
        assert described is not None
        was = transport.found[member]
        transport.found[member] = was + 1 if type(was) in (int, float) else f"not {was}"
        if member not in target.compared:
            before = (await handler.prepare(call, described.snapshot)).facts["before"]
            assert all(before[kept] == transport.found.get(kept) for kept in target.kept if kept not in call.input)
            return
        with pytest.raises(ActionFailed) as caught:
            await handler.prepare(call, described.snapshot)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.target_changed", False)
    assert caught.value.details["sent"] is False
    assert not any(word in repr(caught.value.details) for word in _PRIVATE)
    assert all(line.startswith("GET") for line in transport.asked)


@pytest.mark.requirement("hermes:describe:target")
async def test_a_job_that_runs_or_moves_its_next_run_stays_the_approved_one() -> None:
    transport = _Target("job")
    async with connector_of(endpoint_of(), transport=transport) as connector:
        handler, call = handler_of(connector, "job_update"), call_of("job_update")
        described = await handler.describe(call)
        assert described is not None
        transport.found |= {"next_run_at": "2026-12-02T03:00:00+00:00", "last_run_at": "2026-12-01T03:00:00+00:00"}
        facts = (await handler.prepare(call, described.snapshot)).facts
    assert facts["before"]["last_run_at"] == "2026-12-01T03:00:00+00:00"
    assert set(facts["wanted"]["sent_sha256"]) == {"schedule"}
    assert "0 4" not in json.dumps(facts)


@pytest.mark.requirement("hermes:prepare:target-changed")
async def test_an_approval_of_a_run_s_request_is_not_used_for_its_next_one() -> None:
    for name, refused in (("run_approval", True), ("run_stop", False)):
        transport = _Target("run")
        async with connector_of(endpoint_of(), transport=transport) as connector:
            handler, call = handler_of(connector, name), call_of(name)
            described = await handler.describe(call)
            assert described is not None
            transport.found["updated_at"] = 1796072199.0  # it went on and waits again
            if not refused:
                await handler.prepare(call, described.snapshot)
                continue
            with pytest.raises(ActionFailed) as caught:
                await handler.prepare(call, described.snapshot)
            assert caught.value.code == "connector.hermes_agent.target_changed"


@pytest.mark.requirement("hermes:prepare:facts")
@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("chat", {"session_id", "text_sha256", "text_chars", "sent_sha256"}),
        ("responses", {"text_sha256", "text_chars", "sent_sha256"}),
        ("run_start", {"session_id", "text_sha256", "text_chars", "sent_sha256"}),
        ("run_approval", {"run_id", "sent_sha256"}),
        ("job_create", {"sent_sha256"}),
    ],
)
async def test_the_facts_of_the_other_mutations_are_hashes_by_member(name: str, members: set[str]) -> None:
    transport = _Target("waiting_run" if name == "run_approval" else "session")
    async with connector_of(endpoint_of(), transport=transport) as connector:
        facts = (await handler_of(connector, name).prepare(call_of(name), None)).facts
    assert set(facts["wanted"]) == members
    assert all(len(value) == 64 for value in facts["wanted"]["sent_sha256"].values())
    assert not any(word in json.dumps(facts) for word in ("verified", "backups", "Nightly", "Summarise"))


@pytest.mark.requirement("hermes:prepare:superseded")
@pytest.mark.parametrize("name", ["chat", "run_start"])
async def test_a_named_session_that_was_compressed_gets_no_turn(name: str) -> None:
    transport = _Target("session")
    transport.found |= {"end_reason": "compression", "ended_at": 2.0}
    async with connector_of(endpoint_of(), transport=transport) as connector:
        with pytest.raises(ActionFailed) as caught:
            await handler_of(connector, name).prepare(call_of(name), None)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.session_superseded", False)


@pytest.mark.requirement("hermes:evidence:session")
@pytest.mark.parametrize("named", [True, False])
async def test_a_chat_says_which_session_it_went_to(named: bool) -> None:
    values = {"prompt": "hi", **({"session_id": "s1"} if named else {})}
    async with StubEndpoint([row_of("s1")]) as stub:
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, "chat"), call_of("chat", values))
        assert not isinstance(outcome, ActionFailed)
        assert len(stub.reads) == (2 if named else 0)
    assert outcome.text == "Echo"
    assert outcome.output["_aip"]["session"] == {
        "requested": "s1" if named else None,
        "effective": "s1" if named else "api-0123456789abcdef",
        "reason": "none",
    }
    assert outcome.output["_aip"]["turn"]["messages_before"] == (2 if named else None)


@pytest.mark.requirement("hermes:answer:its-own-word")
@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (COMPLETION, False),
        ({**COMPLETION, "hermes": {"completed": True, "partial": False, "failed": False}}, False),
        ({**COMPLETION, "hermes": {"completed": False, "failed": True, "error_code": "agent_error"}}, True),
        ({**COMPLETION, "hermes": {"completed": False, "partial": True, "error_code": "output_truncated"}}, True),
        (RESPONSE, False),
        ({**RESPONSE, "status": "incomplete"}, True),
        ({**RESPONSE, "status": "failed"}, True),
    ],
)
async def test_an_answer_that_calls_itself_a_failure_is_passed_on_with_a_warning(
    answer: Mapping[str, Any], failed: bool
) -> None:
    name = "responses" if answer["object"] == "response" else "chat"
    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("POST", "/responses" if name == "responses" else "/completions", reply_json(answer))
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, name), call_of(name, {**INPUTS[name]}))
    assert not isinstance(outcome, ActionFailed)
    assert failed_by_its_word(answer) is failed
    assert {key: outcome.output[key] for key in answer} == answer
    assert ("did not complete" in outcome.output["_aip"]["turn"].get("warning", "")) is failed


@pytest.mark.requirement("hermes:answer:its-own-word")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (COMPLETION, "Echo"),
        (RESPONSE, "Echo"),
        ({"choices": []}, None),
        ({"choices": ["x"]}, None),
        ({"choices": [{"message": {"content": " "}}]}, None),
        ({"object": "response", "output": [{"type": "function_call"}, 3]}, None),
        ({"object": "response", "output": None}, None),
        ({"message": {"role": "assistant", "content": "A"}}, "A"),
    ],
)
def test_the_text_of_an_answer_is_what_a_person_reads(answer: Mapping[str, Any], text: str | None) -> None:
    assert text_of(answer) == text


@pytest.mark.requirement("hermes:answer:its-own-word")
def test_the_warning_of_a_failed_turn_comes_before_every_other() -> None:
    told = session_evidence.turn_evidence(before=None, after=None, same_session=True, text="", failed=True)
    assert "did not complete" in told["warning"]
