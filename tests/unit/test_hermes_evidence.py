"""What `_aip` claims, and what it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.session_evidence import CHAIN_ROWS
from aip_hermes.ids import ActionId
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_routes import RowsTransport, TurningTransport
from tests.support.hermes_stub import row_of

_C1, _C2 = "20261130_205616_082034", "20261130_205700_1a2b3c"


async def _run(transport: RowsTransport, name: str, values: Mapping[str, Any] | None = None, **members: Any) -> Any:
    async with connector_of(endpoint_of(), transport=transport) as connector:
        return await attempt(handler_of(connector, name), call_of(name, values, **members))


def _chain(length: int) -> list[dict[str, Any]]:
    """Return `s1`, compressed `length - 1` times, newest last."""
    ids = ["s1"] + [f"20261130_205616_{number:06x}" for number in range(1, length)]
    return [
        row_of(
            session_id,
            parent_session_id=ids[number - 1] if number else None,
            end_reason=None if number == length - 1 else "compression",
        )
        for number, session_id in enumerate(ids)
    ]


_LINEAGES: Mapping[str, tuple[Sequence[Mapping[str, Any]], str, str]] = {
    "the same id": ([row_of("s1")], "s1", "none"),
    "one compression": (_chain(2), f"20261130_205616_{1:06x}", "compression"),
    "a chain of compressions": (_chain(3), f"20261130_205616_{2:06x}", "compression"),
    "the longest chain": (_chain(CHAIN_ROWS), f"20261130_205616_{CHAIN_ROWS - 1:06x}", "compression"),
    "a chain too long": (_chain(CHAIN_ROWS + 1), f"20261130_205616_{CHAIN_ROWS:06x}", "unknown"),
    "a fork": ([row_of("s1", end_reason="branched"), row_of("f1", parent_session_id="s1")], "f1", "branch"),
    "a fork of a source that ended before": (
        [row_of("s1", end_reason="closed"), row_of("f1", parent_session_id="s1")],
        "f1",
        "branch",
    ),
    "a generated fork of a compressed row": (
        [row_of("s1", end_reason="compression"), row_of("api_1796069436_fa077b4a", parent_session_id="s1")],
        "api_1796069436_fa077b4a",
        "unknown",
    ),
    "a chosen fork of a compressed row": (
        [row_of("s1", end_reason="compression"), row_of("f1", parent_session_id="s1")],
        "f1",
        "unknown",
    ),
    "a continuation of a fork of a compressed row": (
        [
            row_of("s1", end_reason="compression"),
            row_of("f1", parent_session_id="s1", end_reason="compression"),
            row_of(_C2, parent_session_id="f1"),
        ],
        _C2,
        "unknown",
    ),
    "a continuation of a fork of an open row": (
        [
            row_of("s1", end_reason="branched"),
            row_of("f1", parent_session_id="s1", end_reason="compression"),
            row_of(_C2, parent_session_id="f1"),
        ],
        _C2,
        "branch",
    ),
    "a stranger": ([row_of("s1", end_reason="compression"), row_of(_C1)], _C1, "unknown"),
    "a row that is gone": ([row_of("s1", end_reason="compression")], _C1, "unknown"),
    "a circle": (
        [row_of("s1"), row_of("a", parent_session_id="b"), row_of("b", parent_session_id="a")],
        "a",
        "unknown",
    ),
}


@pytest.mark.requirement("hermes:evidence:session")
@pytest.mark.parametrize(("rows", "effective", "reason"), _LINEAGES.values(), ids=list(_LINEAGES))
async def test_an_answered_id_is_called_a_compression_only_when_proven(
    rows: Sequence[Mapping[str, Any]], effective: str, reason: str
) -> None:
    transport = RowsTransport(rows, resolves={"s1": effective})
    outcome = await _run(transport, "session_messages")
    assert outcome.output["session_id"] == effective
    assert outcome.output["_aip"]["session"] == {"requested": "s1", "effective": effective, "reason": reason}
    assert len(transport.asked) == 1 or effective != "s1"


def _chat(session_id: str, content: str = "Echo") -> httpx.Response:
    return httpx.Response(
        200,
        json={
            "object": "hermes.session.chat.completion",
            "session_id": session_id,
            "message": {"role": "assistant", "content": content},
            "usage": {},
        },
    )


@pytest.mark.requirement("hermes:evidence:turn")
@pytest.mark.parametrize(
    ("after", "persisted", "warns"),
    [(4, "yes", False), (8, "yes", False), (3, "user_only", True), (2, "no", True), (1, "unknown", False)],
)
async def test_a_turn_is_stored_when_the_row_has_grown(after: int, persisted: str, warns: bool) -> None:
    transport = TurningTransport(row_of("s1", message_count=2), [row_of("s1", message_count=after)], _chat("s1"))
    outcome = await _run(transport, "session_chat")
    turn = outcome.output["_aip"]["turn"]
    assert (turn["messages_before"], turn["messages_after"], turn["persisted"]) == (2, after, persisted)
    assert ("warning" in turn) is warns
    assert transport.asked == ["GET /api/sessions/s1", "POST /api/sessions/s1/chat", "GET /api/sessions/s1"]


@pytest.mark.requirement("hermes:evidence:turn")
async def test_a_turn_that_moved_to_a_continuation_is_proven_row_by_row() -> None:
    after = [
        row_of("s1", end_reason="compression", message_count=2),
        row_of(_C1, parent_session_id="s1", message_count=5),
    ]
    transport = TurningTransport(row_of("s1", message_count=2), after, _chat(_C1))
    outcome = await _run(transport, "session_chat")
    ours = outcome.output["_aip"]
    assert ours["session"] == {"requested": "s1", "effective": _C1, "reason": "compression"}
    assert ours["turn"] == {"messages_before": 2, "messages_after": 5, "persisted": "unknown"}
    assert transport.asked[2:] == [f"GET /api/sessions/{_C1}", "GET /api/sessions/s1"]


@pytest.mark.requirement("hermes:evidence:no-visible-text")
@pytest.mark.parametrize("content", ["", "  \n"])
async def test_an_answer_without_text_carries_a_warning_and_is_not_repeated(content: str) -> None:
    transport = TurningTransport(row_of("s1"), [row_of("s1", message_count=4)], _chat("s1", content))
    outcome = await _run(transport, "session_chat")
    assert "no visible output" in outcome.output["_aip"]["turn"]["warning"]
    assert outcome.text is None
    assert len(transport.sent) == 1


@pytest.mark.requirement("hermes:evidence:turn")
async def test_a_row_that_can_not_be_read_back_leaves_the_turn_unknown() -> None:
    outcome = await _run(TurningTransport(row_of("s1"), [], _chat("s1")), "session_chat")
    assert isinstance(outcome, Answer)
    assert outcome.output["_aip"]["turn"] == {
        "messages_before": 2,
        "messages_after": None,
        "persisted": "unknown",
        "messages_after_read": "not_found",
    }


@pytest.mark.requirement("hermes:evidence:previous-uncertain")
async def test_the_next_turn_names_the_one_that_may_still_run() -> None:
    transport = TurningTransport(row_of("s1"), [row_of("s1", message_count=4)], _chat("s1"))
    outcome = await _run(transport, "session_chat", previous_uncertain=ActionId("act_before"))
    assert outcome.output["_aip"]["turn"]["previous_uncertain"] == "act_before"


@pytest.mark.requirement("hermes:headers:session-key-is-explicit")
@pytest.mark.parametrize(("values", "said"), [({}, "absent"), ({"session_key": "family"}, "sent")])
async def test_a_turn_says_whether_a_memory_scope_was_sent(values: Mapping[str, Any], said: str) -> None:
    transport = TurningTransport(row_of("s1"), [row_of("s1")], _chat("s1"))
    outcome = await _run(transport, "session_chat", {"session_id": "s1", "message": "m", **values})
    assert outcome.output["_aip"]["session_key"] == said
    assert "family" not in repr(outcome)


@pytest.mark.requirement("hermes:evidence:turn")
async def test_a_lost_turn_reports_both_counts_and_claims_nothing() -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": httpx.ReadError("lost")})
    outcome = await _run(transport, "session_chat")
    assert isinstance(outcome, ActionFailed)
    assert outcome.uncertain
    reconciliation = outcome.details["reconciliation"]
    assert (reconciliation["messages_before"], reconciliation["messages_after"]) == (2, 2)
    assert "persisted" not in reconciliation
    assert "act_1" in outcome.message


def _session(row: Mapping[str, Any], status: int = 200) -> httpx.Response:
    return httpx.Response(status, json={"object": "hermes.session", "session": row})


@pytest.mark.requirement("hermes:evidence:patch")
@pytest.mark.parametrize(
    ("before", "values", "after", "expected"),
    [
        (
            row_of("s1"),
            {"title": "New"},
            row_of("s1", title="New"),
            {"requested": {"title": "New"}, "effective": {"title": "New"}, "changed": True},
        ),
        (
            row_of("s1", end_reason="one", ended_at=1.0),
            {"end_reason": "two"},
            row_of("s1", end_reason="one", ended_at=1.0),
            {
                "requested": {"end_reason": "two"},
                "effective": {"end_reason": "one"},
                "changed": False,
                "note": "unchanged: already closed as one",
            },
        ),
        (
            row_of("s1", title="Old"),
            {"title": None},
            row_of("s1"),
            {"requested": {"title": None}, "effective": {"title": None}, "changed": True},
        ),
        (
            row_of("s1"),
            {"end_reason": "one"},
            row_of("s1"),
            {
                "requested": {"end_reason": "one"},
                "effective": {"end_reason": None},
                "changed": False,
                "note": "the close reason was not taken; it is empty",
            },
        ),
        (row_of("s1"), {}, row_of("s1"), {"requested": {}, "effective": {}, "changed": False}),
    ],
)
async def test_a_patch_shows_what_was_asked_and_what_stands_there(
    before: Mapping[str, Any], values: Mapping[str, Any], after: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    transport = RowsTransport([before], answers={"PATCH": _session(after)})
    outcome = await _run(transport, "session_patch", {"session_id": "s1", **values})
    assert outcome.output["_aip"]["patch"] == expected


_FORKS: Mapping[str, tuple[Sequence[Mapping[str, Any]], str]] = {
    "whole": (
        [row_of("s1", end_reason="branched"), row_of("f1", parent_session_id="s1", title="Fork one")],
        "complete",
    ),
    "untitled": ([row_of("s1", end_reason="branched"), row_of("f1", parent_session_id="s1")], "partial"),
    "without messages": (
        [
            row_of("s1", end_reason="branched"),
            row_of("f1", parent_session_id="s1", title="Fork one", message_count=0),
        ],
        "partial",
    ),
    "source ended only": ([row_of("s1", end_reason="branched")], "partial"),
    "nothing": ([row_of("s1")], "none"),
    "another's child": ([row_of("s1", end_reason="branched"), row_of("f1", parent_session_id="x")], "unknown"),
    "source gone": ([row_of("f1", parent_session_id="s1", title="Fork one")], "unknown"),
}


@pytest.mark.requirement("hermes:evidence:fork")
@pytest.mark.parametrize(("after", "state"), _FORKS.values(), ids=list(_FORKS))
@pytest.mark.parametrize("answered", [True, False])
async def test_a_fork_is_read_back_on_both_sides_whatever_its_answer(
    after: Sequence[Mapping[str, Any]], state: str, answered: bool
) -> None:
    answer = _session(row_of("f1", parent_session_id="s1"), 201) if answered else httpx.Response(502, text="<html>")
    transport = TurningTransport(row_of("s1"), after, answer)
    outcome = await _run(transport, "session_fork")
    if isinstance(outcome, Answer):
        fork = outcome.output["_aip"]["fork"]
        assert outcome.output["_aip"]["session"] == {"requested": "f1", "effective": "f1", "reason": "none"}
    else:
        fork = outcome.details["reconciliation"]["fork"]
        assert outcome.uncertain
    assert fork["state"] == state
    assert (fork["source"]["id"], fork["child"]["id"]) == ("s1", "f1")
    assert len(transport.sent) == 1


@pytest.mark.requirement("hermes:evidence:fork")
async def test_a_lost_fork_without_a_child_id_claims_nothing_about_the_child() -> None:
    transport = TurningTransport(row_of("s1"), [row_of("s1", end_reason="branched")], httpx.Response(504))
    outcome = await _run(transport, "session_fork", {"session_id": "s1"})
    assert outcome.details["reconciliation"]["fork"]["child"] == {"id": None, "read": "not_named"}
    assert outcome.details["reconciliation"]["fork"]["state"] == "unknown"


@pytest.mark.requirement("hermes:evidence:fork")
@pytest.mark.parametrize("answer", [httpx.ConnectError("refused"), httpx.Response(401), httpx.Response(429)], ids=str)
async def test_a_fork_that_never_began_is_not_read_back(answer: httpx.Response | Exception) -> None:
    transport = RowsTransport([row_of("s1")], answers={"POST": answer})
    outcome = await _run(transport, "session_fork")
    assert not outcome.uncertain
    assert "reconciliation" not in outcome.details
    assert transport.asked == ["GET /api/sessions/s1", "POST /api/sessions/s1/fork"]


@pytest.mark.requirement("hermes:evidence:session")
@pytest.mark.parametrize(
    ("values", "requested"), [({"id": " new-1 "}, "new-1"), ({"session_id": "new-1"}, "new-1"), ({}, None)]
)
async def test_a_create_compares_the_answered_id_with_the_one_asked_for(
    values: Mapping[str, Any], requested: str | None
) -> None:
    transport = RowsTransport([], answers={"POST": _session(row_of("new-1"), 201)})
    outcome = await _run(transport, "session_create", values)
    assert outcome.output["_aip"]["session"] == {"requested": requested, "effective": "new-1", "reason": "none"}


@pytest.mark.requirement("hermes:answer:passed-through")
async def test_the_members_of_the_provider_stay_as_they_are() -> None:
    body = {"sessions": [{"id": "a", "input_tokens": 3}], "token": "kept", "nested": {"x": [1, None]}}
    transport = RowsTransport([], answers={"GET": httpx.Response(200, json=body)})
    assert (await _run(transport, "sessions_list")).output == body


@pytest.mark.requirement("hermes:health:every-endpoint")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"status": "ok", "platform": "hermes-agent", "version": "0.19.0"},
            {"status": "ok", "platform": "hermes-agent", "version": "0.19.0"},
        ),
        ({"status": "ok", "version": 3}, {"status": "ok"}),
    ],
)
async def test_health_answers_in_its_own_form(body: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    outcome = await _run(RowsTransport([], answers={"GET": httpx.Response(200, json=body)}), "health")
    assert outcome.output == {"endpoint_id": "primary", "http_status": 200, "raw": body, **expected}


@pytest.mark.requirement("hermes:health:every-endpoint")
@pytest.mark.parametrize("body", [{"status": "degraded"}, {}])
async def test_an_endpoint_that_does_not_say_ok_is_a_failure(body: Mapping[str, Any]) -> None:
    outcome = await _run(RowsTransport([], answers={"GET": httpx.Response(200, json=body)}), "health")
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.retryable) == ("connector.hermes_agent.remote_temporary", True)
