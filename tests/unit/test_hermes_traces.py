"""Whose text an answer holds, and whose text a delete ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.hermes.traces import traces_of
from aip_hermes.ids import EndpointId

pytestmark = pytest.mark.requirement("records:text:traces")

MOVED = {"_aip": {"session": {"requested": "s1", "effective": "s2", "reason": "compression"}}}


def traced(
    operation: str, ids: Mapping[str, str], output: Mapping[str, Any] | None = None
) -> tuple[set[str], set[str]]:
    """Return what is held and what is erased, without the endpoint. ids: of the path, and `session` beside it."""
    found = traces_of(
        load_operations()[operation],
        endpoint_id=EndpointId("primary"),
        ids={name: value for name, value in ids.items() if name != "session"},
        session_id=ids.get("session") or ids.get("session_id"),
        output=output,
    )
    assert all(name.startswith("hermes_agent:primary:") for name in found.about | found.erases)
    held, erased = ({name.split(":", 2)[2] for name in names} for names in (found.about, found.erases))
    return held, erased


@pytest.mark.parametrize(
    ("operation", "ids", "output", "held"),
    [
        ("session_chat", {"session_id": "s1"}, None, {"s1"}),
        ("session_chat", {"session_id": "s1"}, {"session_id": "s2"} | MOVED, {"s1", "s2"}),
        ("session_messages", {"session_id": "s1"}, {"session_id": "s2", "data": [{"id": 7}]}, {"s1", "s2"}),
        ("chat", {"session": "s1"}, {"id": "chatcmpl-1", "choices": []}, {"s1", "chatcmpl-1"}),
        ("chat", {}, {"id": None, "session_id": ""}, set()),
        ("responses", {}, {"id": "resp_1"}, {"resp_1"}),
        ("response_get", {"response_id": "resp_1"}, {"id": "resp_1"}, {"resp_1"}),
        ("run_status", {"run_id": "run_1"}, {"session_id": "s1", "output": "x"}, {"run_1", "s1"}),
        ("sessions_list", {}, {"data": [{"id": "s1"}, {"id": "s2"}, "odd", {}]}, {"s1", "s2"}),
        ("sessions_list", {}, {"data": "odd"}, set()),
        ("session_create", {}, {"session": {"id": "s1"}}, {"s1"}),
        ("session_create", {}, {"session": "odd"}, set()),
        ("session_fork", {"session_id": "s1"}, {"session": {"id": "s2"}}, {"s1", "s2"}),
        ("session_patch", {"session_id": "s1"}, {"session": {"id": "s1"}}, {"s1"}),
        ("health", {}, {"id": "s1"}, set()),
    ],
)
def test_an_answer_is_about_all_that_path_call_and_answer_name(
    operation: str, ids: dict[str, str], output: dict[str, Any] | None, held: set[str]
) -> None:
    assert traced(operation, ids, output) == (held, set())


@pytest.mark.parametrize(
    ("operation", "ids", "erased"),
    [
        ("session_delete", {"session_id": "s1"}, {"s1"}),
        ("response_delete", {"response_id": "resp_1"}, {"resp_1"}),
        ("job_delete", {"job_id": "j1"}, {"j1"}),
        ("session_fork", {"session_id": "s1"}, set()),
        ("session_get", {"session_id": "s1"}, set()),
    ],
)
def test_a_delete_ends_what_its_path_names(operation: str, ids: dict[str, str], erased: set[str]) -> None:
    assert traced(operation, ids)[1] == erased


def test_every_turn_and_every_stream_is_said_to_hold_text() -> None:
    silent = [
        row.name for row in load_operations().values() if (row.turn or row.stream != "none") and row.text == "none"
    ]
    assert silent == []
