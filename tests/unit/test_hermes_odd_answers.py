"""What an endpoint answers may be anything; an attempt still ends with what was proven."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_routes import RowsTransport, TurningTransport
from tests.support.hermes_stub import row_of

_REPLY = '{"session_id": "s1", "message": {"role": "assistant", "content": "Echo"}, "more": %s}'

_UNREADABLE: Mapping[str, str] = {
    "a lone surrogate": "\ud800",
    "dots": "..",
    "a dot": ".",
    "NUL": "a\0b",
    "a line break": "a\r\nX-Other: b",
    "5,000 characters": "x" * 5_000,
    "200,000 characters": "x" * 200_000,
}


async def _run(transport: RowsTransport, name: str, values: Mapping[str, Any] | None = None) -> Any:
    async with connector_of(endpoint_of(), transport=transport) as connector:
        return await attempt(handler_of(connector, name), call_of(name, values))


def _json(text: str, status: int = 200) -> httpx.Response:
    return httpx.Response(status, headers={"content-type": "application/json"}, content=text.encode())


def _numbers_beyond() -> dict[str, str]:
    return {
        "beyond a float": "1e999",
        "below a float": "-1e999",
        "a long integer": "1" * 400,
        "arrays without end": "[" * 200 + "]" * 200,
        "objects without end": '{"a":' * 200 + "1" + "}" * 200,
    }


@pytest.mark.requirement("hermes:answer:nothing-that-breaks-later")
@pytest.mark.parametrize("value", _numbers_beyond().values(), ids=list(_numbers_beyond()))
async def test_what_could_not_be_stored_is_no_success(value: str) -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": _json(_REPLY % value)})
    outcome = await _run(transport, "session_chat")
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == ("connector.hermes_agent.invalid_response", True)


@pytest.mark.requirement("hermes:answer:passed-through")
@pytest.mark.parametrize(
    "value", ["1e308", "9" * 308, "[" * 90 + "]" * 90, '"[[[{{{' + "[" * 300 + '"', "[[]" + ",[]" * 300 + "]"]
)
async def test_large_numbers_and_many_brackets_pass(value: str) -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": _json(_REPLY % value)})
    outcome = await _run(transport, "session_chat")
    assert outcome.output["more"] == json.loads(value)


@pytest.mark.requirement("hermes:answer:nothing-that-breaks-later")
@pytest.mark.parametrize("member", ["started_at", "ended_at", "message_count"])
@pytest.mark.parametrize("value", ["9" * 308, "-" + "9" * 308, '"x"', "[]", "true"])
async def test_a_row_of_impossible_values_can_be_kept_as_a_fact(member: str, value: str) -> None:
    row = json.dumps({"session": row_of("s1") | {member: "VALUE"}}).replace('"VALUE"', value)
    transport = RowsTransport([], answers={"GET": _json(row)})
    async with connector_of(endpoint_of(), transport=transport) as connector:
        prepared = await handler_of(connector, "session_patch").prepare(call_of("session_patch"), None)
    assert json.loads(json.dumps(prepared.facts, allow_nan=False)) == prepared.facts


@pytest.mark.requirement("hermes:answer:odd-ids")
@pytest.mark.parametrize("odd", _UNREADABLE.values(), ids=list(_UNREADABLE))
async def test_a_turn_on_an_id_that_can_not_be_read_stays_a_turn(odd: str) -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": _json(json.dumps({"session_id": odd}))})
    outcome = await _run(transport, "session_chat")
    assert isinstance(outcome, Answer)
    assert outcome.output["_aip"]["session"] == {"requested": "s1", "effective": odd, "reason": "unknown"}
    assert outcome.output["_aip"]["turn"]["persisted"] == "unknown"
    assert transport.asked == ["GET /api/sessions/s1", "POST /api/sessions/s1/chat"]


@pytest.mark.requirement("hermes:answer:odd-ids")
@pytest.mark.parametrize("odd", _UNREADABLE.values(), ids=list(_UNREADABLE))
async def test_a_fork_of_an_id_that_can_not_be_read_stays_a_fork(odd: str) -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": _json(json.dumps({"session": {"id": odd}}), 201)})
    outcome = await _run(transport, "session_fork", {"session_id": "s1"})
    assert isinstance(outcome, Answer)
    assert outcome.output["_aip"]["fork"]["child"] == {"id": odd, "read": "not_read"}


@pytest.mark.requirement("hermes:answer:odd-ids")
@pytest.mark.parametrize("odd", _UNREADABLE.values(), ids=list(_UNREADABLE))
@pytest.mark.parametrize("name", ["session_messages", "session_chat"])
async def test_a_continuation_that_can_not_be_read_is_not_proven(odd: str, name: str) -> None:
    transport = RowsTransport([row_of("s1", end_reason="compression")], resolves={"s1": odd})
    outcome = await _run(transport, name, {"session_id": "s1", "message": "m"} if name == "session_chat" else None)
    if isinstance(outcome, ActionFailed):
        assert outcome.code == "connector.hermes_agent.session_superseded"
        assert outcome.details["current_session_id"] is None
    else:
        assert outcome.output["_aip"]["session"]["reason"] == "unknown"


@pytest.mark.requirement("hermes:answer:odd-ids")
@pytest.mark.parametrize("odd", _UNREADABLE.values(), ids=list(_UNREADABLE))
async def test_a_parent_that_can_not_be_read_ends_the_chain(odd: str) -> None:
    rows = [row_of("s1", end_reason="compression"), row_of("20261130_205616_082034", parent_session_id=odd)]
    transport = RowsTransport(rows, resolves={"s1": "20261130_205616_082034"})
    outcome = await _run(transport, "session_messages")
    assert outcome.output["_aip"]["session"]["reason"] == "unknown"


def _worked(count: int, *, calls: int, **members: Any) -> dict[str, Any]:
    return row_of(
        "s1", message_count=count, api_call_count=calls, input_tokens=calls * 100, output_tokens=calls, **members
    )


@pytest.mark.requirement("hermes:evidence:turn-compacted")
@pytest.mark.parametrize(
    ("after", "persisted"),
    [
        (_worked(8, calls=5), "unknown"),  # release 0.19.0: eight rows before, eight after the compaction
        (_worked(9, calls=5), "unknown"),
        (_worked(8, calls=4), "no"),
        (_worked(9, calls=4), "user_only"),
        (_worked(10, calls=5), "yes"),
        (_worked(10, calls=5, started_at=1796072000.25), "unknown"),
        (_worked(9, calls=1, started_at=1796072000.25), "unknown"),
    ],
)
async def test_a_count_that_hardly_grew_is_a_failed_turn_only_where_no_model_worked(
    after: Mapping[str, Any], persisted: str
) -> None:
    answer = _json(_REPLY % "null")
    outcome = await _run(TurningTransport(_worked(8, calls=4), [after], answer), "session_chat")
    turn = outcome.output["_aip"]["turn"]
    assert turn["persisted"] == persisted
    assert ("warning" in turn) is (persisted != "yes")


@pytest.mark.requirement("hermes:evidence:fork-untitled")
@pytest.mark.parametrize(
    ("status", "title", "state", "titled"),
    [(400, None, "partial", False), (400, "Case #2", "complete", None), (201, None, "complete", None)],
)
async def test_a_refused_fork_whose_child_has_no_title_is_partial(
    status: int, title: str | None, state: str, titled: bool | None
) -> None:
    child = row_of("f1", parent_session_id="s1", title=title)
    body: dict[str, Any] = {"session": child} if status == 201 else {"error": {"code": "invalid_title"}}
    after = [row_of("s1", end_reason="branched"), child]
    outcome = await _run(
        TurningTransport(row_of("s1"), after, _json(json.dumps(body), status)),
        "session_fork",
        {"session_id": "s1", "id": "f1"},
    )
    fork = outcome.output["_aip"]["fork"] if status == 201 else outcome.details["reconciliation"]["fork"]
    assert (fork["state"], fork["child"]["title_as_wanted"]) == (state, titled)
