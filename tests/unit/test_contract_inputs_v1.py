"""What the input schemas of completions, responses, runs and jobs accept and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aip_hermes.contract import load_operations
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.hermes.failures import InputRefused
from aip_hermes.hermes.request import map_call
from tests.support.hermes_calls import INPUTS, call_of, endpoint_of

_OPERATIONS = load_operations()
_NEW = [name for name, row in _OPERATIONS.items() if row.path.startswith(("/v1/", "/api/jobs"))]
_JOB = {"job_id": "0ddaaccff246"}
_USER = {"role": "user", "content": "hi"}
_SYSTEM = {"role": "system", "content": "brief"}


def refusals(operation: str, value: object) -> list[str]:
    """Return `place: keyword` of each violation."""
    lines = operation_validator(_OPERATIONS[operation].input).violations(value)
    return [": ".join(line.split(": ")[:2]) for line in lines]


@pytest.mark.requirement("contract:input:one-question")
@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("chat", {"prompt": "hi"}, []),
        ("chat", {"query": "hi", "model": "x", "temperature": 0.5, "unknown": 1}, []),
        ("chat", {"messages": [_SYSTEM, _USER, {"role": "assistant", "content": "a"}, _USER]}, []),
        ("chat", {}, ["(root): oneOf"]),
        ("chat", {"prompt": "hi", "query": "hi"}, ["(root): oneOf"]),
        ("chat", {"prompt": "hi", "messages": [_USER]}, ["(root): oneOf"]),
        ("chat", {"prompt": " "}, ["/prompt: pattern"]),
        ("chat", {"messages": []}, ["/messages: minItems"]),
        ("chat", {"messages": ["hi"]}, ["/messages/0: type"]),
        ("responses", {"input": "hi"}, []),
        ("responses", {"input": ["hi", _USER]}, []),
        ("responses", {"body": {"input": "hi", "previous_response_id": "resp_1"}}, []),
        ("responses", {}, ["(root): anyOf"]),
        ("responses", {"body": {}}, ["(root): anyOf"]),
        ("responses", {"input": " "}, ["/input: pattern"]),
        ("responses", {"input": 5}, ["/input: type"]),
        ("responses", {"input": "x", "conversation": "c", "previous_response_id": "r"}, ["(root): not"]),
        ("run_start", {"input": [_USER]}, []),
        ("run_start", {"input": ["hi"]}, ["/input/0: type"]),
        ("run_start", {"body": {"instructions": "x"}}, ["(root): anyOf"]),
        ("run_start", {"input": "x", "conversation_history": [1]}, ["/conversation_history/0: type"]),
        ("run_approval", {"run_id": "r", "choice": "always"}, []),
        ("run_approval", {"run_id": "r", "body": {"choice": "deny", "all": True}}, []),
        ("run_approval", {"run_id": "r"}, ["(root): anyOf"]),
        ("run_approval", {"run_id": "r", "choice": "maybe"}, ["/choice: enum"]),
        ("run_approval", {"run_id": "r", "choice": "deny", "all": "no"}, ["/all: type"]),
        ("run_approval", {"run_id": "r", "choice": "deny", "all": True, "resolve_all": False}, ["(root): not"]),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_a_turn_or_an_answer_says_one_thing(operation: str, value: object, expected: list[str]) -> None:
    assert refusals(operation, value) == expected


@pytest.mark.requirement("contract:input:session-place")
@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("chat", {"prompt": "hi", "session_id": "票据-é"}, []),
        ("chat", {"prompt": "hi", "session_id": "20260406_164014_74b2d1"}, []),
        ("chat", {"messages": [_SYSTEM, _USER], "session_id": "s"}, []),
        ("chat", {"messages": [_USER, _USER], "session_id": "s"}, ["/messages: maxContains"]),
        ("chat", {"messages": [_SYSTEM], "session_id": "s"}, ["/messages: contains"]),
        ("run_start", {"session_id": "s1", "input": "hi"}, []),
        ("run_start", {"session_id": "s1", "body": {"input": "hi"}}, []),
        ("run_start", {"body": {"input": "hi", "session_id": "s1"}}, []),
        ("responses", {"input": "hi", "session_id": "s1"}, ["/session_id: not"]),
        ("responses", {"body": {"input": "hi", "session_id": "s1"}}, ["/body/session_id: not"]),
        ("run_status", {"run_id": "r", "session_id": "s1"}, ["/session_id: not"]),
        ("run_stop", {"run_id": "r", "session_id": "s1"}, ["/session_id: not"]),
        ("run_approval", {"run_id": "r", "choice": "deny", "session_id": "s1"}, ["/session_id: not"]),
        ("response_get", {"response_id": "r", "session_id": "s1"}, ["/session_id: not"]),
        ("job_get", {**_JOB, "session_id": "s1"}, ["(root): additionalProperties"]),
        ("skills", {"session_id": "s1"}, ["(root): additionalProperties"]),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_a_session_is_named_where_it_has_an_effect_or_not_at_all(
    operation: str, value: object, expected: list[str]
) -> None:
    assert refusals(operation, value) == expected


@pytest.mark.requirement("contract:input:session-place")
@pytest.mark.parametrize(
    "session_id", ["", " ", " s", "s ", "\u3000s", ".", "..", "../x", "a/b", "a\\b", "C:x", "a\n", "x" * 257, "\ud800"]
)
@pytest.mark.parametrize("operation", ["chat", "run_start"])
def test_a_session_that_a_turn_may_make_keeps_the_rules_of_new_ids(operation: str, session_id: str) -> None:
    value = {**INPUTS[operation], "session_id": session_id}
    assert set(refusals(operation, value)) == {"/session_id: pattern"}


@pytest.mark.requirement("contract:input:no-effect-no-entry")
@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("chat", {"prompt": "hi", "stream": True}, ["/stream: const"]),
        ("chat", {"prompt": "hi", "stream": False}, []),
        ("chat", {"prompt": "hi", "max_events": 5}, ["/max_events: not"]),
        ("chat", {"prompt": "hi", "body": {"model": "x"}}, ["/body: not"]),
        ("responses", {"input": "hi", "stream": True}, ["/stream: const"]),
        ("responses", {"body": {"input": "hi"}, "model": "x"}, ["/model: not"]),
        ("responses", {"body": {"input": "hi", "session_key": "k"}}, ["/body/session_key: not"]),
        ("responses", {"body": {"input": "hi", "body": {}}}, ["/body/body: not"]),
        ("run_start", {"body": {"input": "hi"}, "instructions": "x"}, ["/instructions: not"]),
        ("run_stop", {"run_id": "r", "body": {}}, ["/body: not"]),
        ("run_status", {"run_id": "r", "max_events": 5}, ["/max_events: not"]),
        ("job_create", {"body": {"name": "n", "schedule": "1h"}, "prompt": "p"}, ["/prompt: not"]),
        ("job_update", {**_JOB, "body": {"name": "n"}, "name": "m"}, ["/name: not"]),
        ("job_update", {**_JOB, "skill": "a", "skills": ["b"]}, ["(root): not"]),
        ("jobs_list", {"include_disabled": True, "limit": 5}, ["(root): additionalProperties"]),
        ("jobs_list", {"query": {"include_disabled": "true"}}, []),
        ("jobs_list", {"query": {"source": "x"}}, ["/query: additionalProperties"]),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_a_member_without_effect_is_refused(operation: str, value: object, expected: list[str]) -> None:
    assert refusals(operation, value) == expected


@pytest.mark.requirement("contract:input:jobs")
@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("job_create", {"name": "n", "schedule": "30m"}, []),
        ("job_create", {"name": "n" * 200, "schedule": "every 2h", "prompt": "p" * 5000, "repeat": 1}, []),
        ("job_create", {"name": "n", "schedule": "1h", "body": {"name": "n", "schedule": "1h", "skills": ["a"]}}, []),
        ("job_create", {"body": {"name": "n", "schedule": "1h"}}, []),
        ("job_create", {"body": {"name": "n"}, "schedule": "1h"}, ["/body: required"]),
        ("job_create", {"name": "n"}, ["(root): required"]),
        ("job_create", {"name": "n" * 201, "schedule": "1h"}, ["/name: maxLength"]),
        ("job_create", {"name": " ", "schedule": "1h"}, ["/name: pattern"]),
        ("job_create", {"name": "n", "schedule": "s" * 513}, ["/schedule: maxLength"]),
        ("job_create", {"name": "n", "schedule": "1h", "prompt": "p" * 5001}, ["/prompt: maxLength"]),
        ("job_create", {"name": "n", "schedule": "1h", "repeat": 0}, ["/repeat: minimum"]),
        ("job_create", {"name": "n", "schedule": "1h", "color": 1}, ["(root): additionalProperties"]),
        ("job_create", {"name": "n", "schedule": "1h", "session_key": "k"}, ["(root): additionalProperties"]),
        ("job_update", {**_JOB, "enabled": False}, []),
        ("job_update", {**_JOB, "body": {"skill": "a", "repeat": 3}}, []),
        ("job_update", _JOB, ["(root): anyOf"]),
        ("job_update", {**_JOB, "body": {}}, ["(root): anyOf"]),
        ("job_update", {**_JOB, "color": 1, "name": "n"}, ["(root): additionalProperties"]),
        ("job_run", {"job_id": "0DDAACCFF246"}, ["/job_id: pattern"]),
        ("job_get", {"job_id": "0ddaaccff246\n"}, ["/job_id: pattern"]),
        ("job_delete", {"job_id": "../../jobs"}, ["/job_id: pattern"]),
        ("job_pause", {"job_id": "\u0661" * 12}, ["/job_id: pattern"]),
        ("job_resume", {}, ["(root): required"]),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_a_job_is_closed_and_bounded(operation: str, value: object, expected: list[str]) -> None:
    assert refusals(operation, value) == expected


@pytest.mark.requirement("contract:input:issued-ids")
@pytest.mark.parametrize(
    ("operation", "name"), [("run_status", "run_id"), ("run_stop", "run_id"), ("response_get", "response_id")]
)
@pytest.mark.parametrize(
    ("value", "keyword"),
    [
        ("run_x", None),
        ("a/../b", None),
        ("票", None),
        ("..", "pattern"),
        ("a\n", "pattern"),
        ("", "minLength"),
        (7, "type"),
    ],
)
def test_an_issued_id_of_a_run_or_response_passes(
    operation: str, name: str, value: object, keyword: str | None
) -> None:
    assert refusals(operation, {name: value}) == ([] if keyword is None else [f"/{name}: {keyword}"])


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([_USER]) | st.just(["x"])
_MEMBERS = st.dictionaries(
    st.sampled_from(
        ["prompt", "query", "messages", "input", "session_id", "stream", "choice", "all", "name", "schedule", "enabled",
         "skill", "skills", "instructions", "session_key"]
    ),
    _VALUES,
    max_size=4,
)  # fmt: skip


@pytest.mark.requirement("contract:input:accepted-is-sendable")
@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(_NEW), top=_MEMBERS, nested=st.none() | _MEMBERS)
def test_what_a_schema_accepts_becomes_a_request_unless_two_places_differ(
    name: str, top: dict[str, Any], nested: dict[str, Any] | None
) -> None:
    ids = {key: value for key, value in INPUTS[name].items() if key.endswith("_id") and key != "session_id"}
    value = {**ids, **top, **({} if nested is None else {"body": nested})}
    if refusals(name, value):
        return
    try:
        mapped = map_call(operation=_OPERATIONS[name], endpoint=endpoint_of(), call=call_of(name, value))
    except InputRefused as refused:
        assert "differ" in refused.message  # noqa: PT017 - one of two allowed ends
        return
    if "session_id" in value:
        assert mapped.session_id == value["session_id"]
