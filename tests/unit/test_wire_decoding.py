"""Strict types, lenient replies, presence of nulls, what a refusal says, and errors of the tree."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from aip_hermes import wire
from aip_hermes.errors import ActionFailed, ProviderFailed
from tests.support import wire_values as v


def _refusal(model: type[wire.Wire], value: Any) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(value)
    return refused.value


@pytest.mark.requirement("wire:objects:strict-types", "wire:objects:no-echo")
@pytest.mark.parametrize("number", [1.0, "1", True, -1, 2**64, None])
def test_a_required_integer_is_an_integer_within_its_bounds(number: object) -> None:
    refusal = _refusal(wire.StreamChunk, {"action_id": "act_1", "sequence": number, "kind": "data"})
    assert [text.split(":")[0] for text in wire.violations(refusal)] == ["sequence"]
    assert not wire.breaks_rules_only(refusal)


@pytest.mark.requirement("wire:objects:strict-types")
@pytest.mark.parametrize("limit", [2**32, 1.5, "20"])
def test_a_small_integer_stays_within_32_bits(limit: object) -> None:
    assert not wire.breaks_rules_only(_refusal(wire.EventStreamRequest, {"limit": limit}))


@pytest.mark.requirement("wire:objects:strict-types")
@pytest.mark.parametrize("flag", ["true", 1, 0, None])
def test_a_flag_is_a_boolean(flag: object) -> None:
    _refusal(wire.ActionStatusRequest, {"action_id": "act_1", "include_result": flag})


@pytest.mark.requirement("wire:objects:presence")
def test_null_inside_free_json_survives_and_a_required_null_is_written() -> None:
    part = wire.JsonPart(data=None)
    action = wire.Action(id="act_1", capability_id="c", input={"a": None, "b": [None]})
    assert part.wire() == {"type": "json", "data": None}
    assert action.wire()["input"] == {"a": None, "b": [None]}
    assert wire.ActionResult(action_id="act_1", status="completed", output={"a": None}).wire()["output"] == {"a": None}


@pytest.mark.requirement("wire:objects:round-trip")
def test_links_are_written_in_alphabetical_order() -> None:
    status = wire.ActionStatus(
        action_id="act_1", state="running", updated_at="2031-02-03T04:05:06Z", links={"self": "/a", "events": "/b"}
    )
    assert list(status.wire()["links"]) == ["events", "self"]


@pytest.mark.requirement("wire:objects:unknown-members")
def test_a_client_ignores_unknown_members_at_every_level() -> None:
    reply = {
        **v.ENVELOPE,
        "new": 1,
        "body": {"action": {**v.ACTION, "new": 1, "delegation_chain": [{**v.DELEGATION, "new": 1}]}},
        "from": {**v.MIRA, "new": 1},
    }
    assert wire.lenient(wire.Envelope, reply).wire() == v.ENVELOPE


@pytest.mark.requirement("wire:objects:unknown-members")
def test_free_json_keeps_every_member_for_a_client_too() -> None:
    result = {"action_id": "act_1", "status": "completed", "output": {"new": {"newer": 1}}}
    assert wire.lenient(wire.ActionResult, {**result, "new": 1}).wire() == result


@pytest.mark.requirement("wire:objects:no-echo")
def test_a_refusal_names_places_and_never_values() -> None:
    action = {**v.ACTION, "mode": "hunter2", "timeout_ms": "hunter2", "identity": "hunter2", "callback": {"hunter2": 1}}
    refusal = _refusal(wire.Envelope, {**v.ENVELOPE, "body": {"action": {**action, "callback": "hunter2"}}})
    texts = wire.violations(refusal)
    assert [text.partition(":")[0] for text in texts] == [
        "body.mode", "body.timeout_ms", "body.callback", "body.identity",
    ]  # fmt: skip
    assert "hunter2" not in "".join(texts)


@pytest.mark.requirement("wire:objects:no-echo")
def test_a_refusal_has_at_most_sixteen_texts() -> None:
    stranger = {f"m{n}": n for n in range(40)}
    assert len(wire.violations(_refusal(wire.Cancel, {"target": {"action": "act_1"}, **stranger}))) == 16


class _Busy(ProviderFailed, code="connector.wire_test.busy", retryable=True, component="wire-test"):
    pass


@pytest.mark.requirement("wire:errors:from-tree")
def test_an_error_of_the_tree_travels_whole() -> None:
    error = wire.protocol_error(_Busy("in use", details={"shelf": "b"}, retry_after_ms=5, uncertain=True))
    assert error.wire() == {
        "code": "connector.wire_test.busy",
        "message": "in use",
        "category": "connector",
        "retryable": True,
        "retry_after_ms": 5,
        "details": {"shelf": "b", "uncertain_outcome": True},
        "source": {"component": "wire-test"},
    }


@pytest.mark.requirement("wire:errors:from-tree")
def test_a_certain_error_without_details_writes_none() -> None:
    class Plain(ActionFailed, code="wire.test.plain"):
        pass

    assert wire.protocol_error(Plain("no")).wire() == {
        "code": "wire.test.plain",
        "message": "no",
        "category": "permanent",
        "retryable": False,
        "source": {"component": "aip-runtime"},
    }
