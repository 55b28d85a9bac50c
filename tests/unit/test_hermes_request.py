"""From an input to one request, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aip_hermes.contract import load_capability_file, load_operations
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.hermes.failures import InputRefused
from aip_hermes.hermes.request import Mapped, map_call
from tests.support.hermes_calls import INPUTS, call_of, endpoint_of
from tests.support.hermes_stub import KEY

_OPERATIONS = load_operations()
_ASKED = {"role": "user", "content": "What is verified?"}
_JOB = "0ddaaccff246"
_MAX_BODY_BYTES = load_capability_file().connector.max_request_body_bytes


def _map(name: str, values: Mapping[str, Any], **members: Any) -> Mapped:
    return map_call(operation=_OPERATIONS[name], endpoint=endpoint_of(), call=call_of(name, values, **members))


def _body(name: str, values: Mapping[str, Any]) -> Any:
    content = _map(name, values).request.body
    assert content is not None
    return json.loads(content)


@pytest.mark.requirement("hermes:request:mapping")
@pytest.mark.parametrize(
    ("name", "method", "target", "body"),
    [
        ("health", "GET", "/health", None),
        ("health_detailed", "GET", "/health/detailed", None),
        ("models", "GET", "/v1/models", None),
        ("capabilities", "GET", "/v1/capabilities", None),
        ("skills", "GET", "/v1/skills", None),
        ("toolsets", "GET", "/v1/toolsets", None),
        ("chat", "POST", "/v1/chat/completions", {"model": "hermes-agent", "messages": [_ASKED], "stream": False}),
        ("responses", "POST", "/v1/responses", {"input": "What is verified?", "stream": False}),
        ("response_get", "GET", "/v1/responses/resp_1", None),
        ("response_delete", "DELETE", "/v1/responses/resp_1", None),
        ("run_start", "POST", "/v1/runs", {"session_id": "s1", "input": "Check the backups."}),
        ("run_status", "GET", "/v1/runs/run_1", None),
        ("run_approval", "POST", "/v1/runs/run_1/approval", {"choice": "deny"}),
        ("run_stop", "POST", "/v1/runs/run_1/stop", None),
        ("jobs_list", "GET", "/api/jobs?include_disabled=true", None),
        (
            "job_create",
            "POST",
            "/api/jobs",
            {"name": "Nightly", "schedule": "0 3 * * *", "prompt": "Summarise the day."},
        ),
        ("job_get", "GET", "/api/jobs/0ddaaccff246", None),
        ("job_update", "PATCH", "/api/jobs/0ddaaccff246", {"schedule": "0 4 * * *"}),
        ("job_delete", "DELETE", "/api/jobs/0ddaaccff246", None),
        ("job_pause", "POST", "/api/jobs/0ddaaccff246/pause", None),
        ("job_resume", "POST", "/api/jobs/0ddaaccff246/resume", None),
        ("job_run", "POST", "/api/jobs/0ddaaccff246/run", None),
        ("sessions_list", "GET", "/api/sessions?limit=5", None),
        ("session_create", "POST", "/api/sessions", {"id": "new-1", "title": "New one"}),
        ("session_get", "GET", "/api/sessions/s1", None),
        ("session_patch", "PATCH", "/api/sessions/s1", {"title": "Renamed"}),
        ("session_delete", "DELETE", "/api/sessions/s1", None),
        ("session_messages", "GET", "/api/sessions/s1/messages", None),
        ("session_fork", "POST", "/api/sessions/s1/fork", {"id": "f1", "title": "Fork one"}),
        ("session_chat", "POST", "/api/sessions/s1/chat", {"message": "What is verified?"}),
        ("session_chat_stream", "POST", "/api/sessions/s1/chat/stream", {"message": "What is verified?"}),
    ],
)
def test_each_operation_becomes_its_request(name: str, method: str, target: str, body: object) -> None:
    request = _map(name, INPUTS[name]).request
    assert (request.method, request.target) == (method, target)
    assert (None if request.body is None else json.loads(request.body)) == body
    assert request.mutation is (method != "GET")


@pytest.mark.requirement("hermes:request:mapping")
@pytest.mark.parametrize("name", ["session_get", "session_chat"])
def test_a_turn_may_take_as_long_as_its_endpoint_allows_and_others_what_their_row_says(name: str) -> None:
    row = _OPERATIONS[name]
    mapped = map_call(operation=row, endpoint=endpoint_of(turn_timeout_s=7.0), call=call_of(name))
    assert mapped.request.timeout_s == (7.0 if row.turn else row.http_timeout_s)


@pytest.mark.requirement("hermes:request:body")
@pytest.mark.parametrize(
    ("name", "values", "body"),
    [
        ("session_create", {"id": "a", "session_key": "family", "idempotency_key": "k"}, {"id": "a"}),
        ("session_create", {"session_id": "a"}, {"session_id": "a"}),
        ("session_create", {}, {}),
        ("session_create", {"body": {"id": "a", "idempotency_key": "k", "session_key": "f"}}, {"id": "a"}),
        ("session_patch", {"session_id": "s", "title": None, "idempotency_key": "k"}, {"title": None}),
        ("session_patch", {"session_id": "s", "body": {"session_id": "s", "end_reason": "x"}}, {"end_reason": "x"}),
        ("session_patch", {"session_id": "s"}, {}),
        ("session_fork", {"session_id": "s"}, {}),
        ("session_fork", {"session_id": "s", "id": "c", "title": "T"}, {"id": "c", "title": "T"}),
        ("session_fork", {"session_id": "s", "title": "T", "body": {"id": "c"}}, {"id": "c"}),
        ("session_chat", {"session_id": "s", "prompt": "p"}, {"message": "p"}),
        ("session_chat", {"session_id": "s", "query": "q"}, {"message": "q"}),
        ("session_chat", {"session_id": "s", "prompt": "p", "query": "q"}, {"message": "p"}),
        ("session_chat", {"session_id": "s", "message": "m", "prompt": "p"}, {"message": "m"}),
        ("session_chat", {"session_id": "s", "input": "i", "prompt": "p"}, {"input": "i"}),
        ("session_chat", {"session_id": "s", "prompt": "p", "body": {}}, {"message": "p"}),
        ("session_chat", {"session_id": "s", "prompt": "p", "body": {"message": "m"}}, {"message": "m"}),
        (
            "session_chat",
            {"session_id": "s", "message": "m", "system_message": "y", "session_key": "f", "max_events": 3},
            {"message": "m", "system_message": "y"},
        ),
        ("session_chat", {"session_id": "s", "message": "m", "_aip": {"actor": "x"}}, {"message": "m"}),
        (
            "chat",
            {"query": "q", "model": "m", "temperature": 0.5, "session_id": "s", "session_key": "f", "_aip": {}},
            {"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": False, "temperature": 0.5},
        ),
        (
            "chat",
            {"messages": [_ASKED], "x": 1},
            {"model": "hermes-agent", "messages": [_ASKED], "stream": False, "x": 1},
        ),
        ("responses", {"body": {"input": ["a"], "idempotency_key": "k"}}, {"input": ["a"], "stream": False}),
        ("responses", {"input": "a", "stream": False, "store": False}, {"input": "a", "stream": False, "store": False}),
        ("run_start", {"input": "a", "session_key": "f"}, {"input": "a"}),
        ("run_start", {"body": {"input": "a", "session_id": "s"}}, {"input": "a", "session_id": "s"}),
        ("run_start", {"session_id": "s", "body": {"input": "a"}}, {"input": "a", "session_id": "s"}),
        (
            "run_start",
            {"session_id": "s", "body": {"input": "a", "session_id": "s"}},
            {"input": "a", "session_id": "s"},
        ),
        ("run_approval", {"run_id": "r", "choice": "once", "all": True}, {"choice": "once", "all": True}),
        ("run_approval", {"run_id": "r", "body": {"choice": "deny"}}, {"choice": "deny"}),
        ("run_approval", {"run_id": "r", "choice": "deny", "body": {"choice": "deny"}}, {"choice": "deny"}),
        ("run_approval", {"run_id": "r", "choice": "deny", "idempotency_key": "k"}, {"choice": "deny"}),
        (
            "job_create",
            {"name": "n", "schedule": "1h", "body": {"name": "n", "schedule": "1h"}},
            {"name": "n", "schedule": "1h"},
        ),
        ("job_update", {"job_id": _JOB, "body": {"enabled": False}}, {"enabled": False}),
        ("job_update", {"job_id": _JOB, "name": "n", "session_key": "f", "idempotency_key": "k"}, {"name": "n"}),
    ],
)
def test_the_body_is_the_nested_one_or_the_input_without_what_steers_the_transport(
    name: str, values: Mapping[str, Any], body: Any
) -> None:
    assert _body(name, values) == body


@pytest.mark.requirement("hermes:request:query")
@pytest.mark.parametrize(
    ("values", "query"),
    [
        ({}, ""),
        ({"limit": 0}, "?limit=0"),
        ({"limit": 200, "offset": 3}, "?limit=200&offset=3"),
        ({"limit": 5.0}, "?limit=5"),
        (
            {"query": {"source": "api server&x"}, "include_children": True},
            "?include_children=true&source=api%20server%26x",
        ),
        ({"limit": 5, "query": {"limit": 5}}, "?limit=5"),
        ({"source": "票"}, "?source=%E7%A5%A8"),
    ],
)
def test_the_query_holds_what_the_row_names(values: Mapping[str, Any], query: str) -> None:
    assert _map("sessions_list", values).request.target == "/api/sessions" + query


@pytest.mark.requirement("hermes:request:query")
def test_a_page_of_messages_is_asked_for_in_the_query() -> None:
    values = {"session_id": "a b", "offset": 50, "query": {"limit": "25"}}
    assert _map("session_messages", values).request.target == "/api/sessions/a%20b/messages?limit=25&offset=50"


_BAD = {
    "no id": ("session_get", {}),
    "number as id": ("session_get", {"session_id": 7}),
    "empty id": ("session_get", {"session_id": ""}),
    "dot": ("session_get", {"session_id": "."}),
    "dots": ("session_get", {"session_id": ".."}),
    "nul": ("session_get", {"session_id": "a\0"}),
    "cr": ("session_get", {"session_id": "a\r"}),
    "lf": ("session_get", {"session_id": "a\n"}),
    "surrogate": ("session_get", {"session_id": "a\ud800"}),
    "over 4096 bytes": ("session_get", {"session_id": "é" * 683}),
    "two ids": ("session_fork", {"session_id": "s", "body": {"session_id": "child"}}),
    "child up": ("session_fork", {"session_id": "s", "id": "../../evil"}),
    "child absolute": ("session_fork", {"session_id": "s", "id": "/etc/x"}),
    "child drive": ("session_fork", {"session_id": "s", "id": "C:x"}),
    "child backslash": ("session_fork", {"session_id": "s", "id": "a\\b"}),
    "child 257": ("session_fork", {"session_id": "s", "id": "x" * 257}),
    "child blank": ("session_fork", {"session_id": "s", "id": "  "}),
    "child control": ("session_fork", {"session_id": "s", "id": "a\x1bb"}),
    "child dot": ("session_fork", {"session_id": "s", "id": " . "}),
    "child like a continuation": ("session_fork", {"session_id": "s", "id": "20260406_164014_74b2d1"}),
    "new id up": ("session_create", {"body": {"id": "a..b"}}),
    "new id number": ("session_create", {"id": 0}),
    "create title": ("session_create", {"title": "x" * 101}),
    "patch title": ("session_patch", {"session_id": "s", "title": "x" * 101}),
    "fork title": ("session_fork", {"session_id": "s", "body": {"title": "x" * 101}}),
    "no message": ("session_chat", {"session_id": "s"}),
    "blank message": ("session_chat", {"session_id": "s", "message": "  "}),
    "number message": ("session_chat", {"session_id": "s", "message": 5}),
    "no parts": ("session_chat", {"session_id": "s", "message": []}),
    "bare texts": ("session_chat", {"session_id": "s", "message": ["hi"]}),
    "blank parts": ("session_chat", {"session_id": "s", "message": [{"type": "text", "text": " "}, 5]}),
    "blank prompt first": ("session_chat", {"session_id": "s", "prompt": " ", "query": "q"}),
    "body no object": ("session_patch", {"session_id": "s", "body": [1]}),
    "key 257": ("session_chat", {"session_id": "s", "message": "m", "session_key": "k" * 257}),
    "key lf": ("session_chat", {"session_id": "s", "message": "m", "session_key": "a\nb"}),
    "key del": ("session_chat", {"session_id": "s", "message": "m", "session_key": "a\x7fb"}),
    "two keys": ("session_chat", {"session_id": "s", "session_key": "a", "body": {"message": "m", "session_key": "b"}}),
    "surrogate in text": ("session_chat", {"session_id": "s", "message": "\udfff"}),
    "infinite": ("session_create", {"model": float("inf")}),
    "query list": ("sessions_list", {"query": []}),
    "unknown in query": ("sessions_list", {"query": {"color": "x"}}),
    "query differs": ("sessions_list", {"limit": 5, "query": {"limit": 6}}),
    "blank in query": ("sessions_list", {"query": {"source": " "}}),
    "null in query": ("sessions_list", {"query": {"limit": None}}),
    "control in query": ("sessions_list", {"source": "a\x00"}),
    "huge number": ("sessions_list", {"limit": 10**5000}),
    "chat without a message": ("chat", {"model": "m"}),
    "chat with two": ("chat", {"prompt": "p", "messages": [_ASKED]}),
    "chat blank": ("chat", {"prompt": " "}),
    "chat no list": ("chat", {"messages": "hi"}),
    "chat list as prompt": ("chat", {"prompt": [_ASKED]}),
    "chat body": ("chat", {"prompt": "p", "body": {}}),
    "chat streamed": ("chat", {"prompt": "p", "stream": True}),
    "chat session number": ("chat", {"prompt": "p", "session_id": 7}),
    "chat session up": ("chat", {"prompt": "p", "session_id": "../x"}),
    "chat session blank": ("chat", {"prompt": "p", "session_id": " "}),
    "chat session padded": ("chat", {"prompt": "p", "session_id": " s"}),
    "chat session 257": ("chat", {"prompt": "p", "session_id": "x" * 257}),
    "chat session lf": ("chat", {"prompt": "p", "session_id": "a\nX: y"}),
    "responses without input": ("responses", {"instructions": "x"}),
    "responses streamed": ("responses", {"input": "x", "stream": 1}),
    "responses session": ("responses", {"input": "x", "session_id": "s"}),
    "responses session beside body": ("responses", {"session_id": "s", "body": {"input": "x"}}),
    "run without input": ("run_start", {"body": {}, "input": "x"}),
    "run session unsafe": ("run_start", {"input": "x", "session_id": "../unsafe"}),
    "run two sessions": ("run_start", {"session_id": "a", "body": {"input": "x", "session_id": "b"}}),
    "run id dots": ("run_status", {"run_id": ".."}),
    "no run id": ("run_stop", {}),
    "no choice": ("run_approval", {"run_id": "r", "all": True}),
    "two choices": ("run_approval", {"run_id": "r", "choice": "once", "body": {"choice": "deny"}}),
    "job id short": ("job_get", {"job_id": "abc"}),
    "job id upper": ("job_run", {"job_id": "0DDAACCFF246"}),
    "job id line end": ("job_delete", {"job_id": _JOB + "\n"}),
    "job id digits of another script": ("job_pause", {"job_id": "\u0661" * 12}),
    "job without members": ("job_update", {"job_id": _JOB}),
    "job two names": ("job_create", {"name": "a", "schedule": "1h", "body": {"name": "b", "schedule": "1h"}}),
}


@pytest.mark.requirement("hermes:request:refused-before-sending")
@pytest.mark.parametrize(("name", "values"), _BAD.values(), ids=list(_BAD))
def test_what_can_not_be_a_request_is_refused(name: str, values: Mapping[str, Any]) -> None:
    with pytest.raises(InputRefused) as caught:
        _map(name, values)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.configuration_or_input", False)
    assert "primary" in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.requirement("hermes:request:titles")
@pytest.mark.parametrize(
    "title", ["x" * 100, "  " + "x" * 100 + "\u200b", "\N{GRINNING FACE}" * 100, "e\u0301" * 50, "a  " * 50, None, ""]
)
def test_a_title_of_a_hundred_code_points_after_cleaning_is_sent_as_it_is(title: str | None) -> None:
    assert _body("session_patch", {"session_id": "s", "title": title}) == {"title": title}


@pytest.mark.requirement("hermes:request:refused-before-sending")
def test_a_body_over_sixteen_mebibytes_is_refused() -> None:
    with pytest.raises(InputRefused):
        _map("session_chat", {"session_id": "s", "message": "x" * _MAX_BODY_BYTES})


@pytest.mark.requirement("hermes:request:refused-before-sending")
def test_nesting_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputRefused):
        _map("session_create", {"model": deep})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_MEMBERS = st.dictionaries(
    st.sampled_from(
        [
            "session_id",
            "id",
            "title",
            "end_reason",
            "message",
            "input",
            "prompt",
            "query",
            "limit",
            "source",
            "offset",
            "session_key",
            "idempotency_key",
            "max_events",
            "include_children",
            "_aip",
            "model",
            "messages",
            "run_id",
            "job_id",
            "response_id",
            "choice",
            "stream",
            "name",
            "schedule",
        ]
    ),
    _JSON | st.text(max_size=8),
    max_size=5,
)
_INPUTS = st.one_of(_MEMBERS, st.builds(lambda top, body: {**top, "body": body}, _MEMBERS, _MEMBERS | _JSON))
_TARGET = re.compile(r"/[A-Za-z0-9/._~%?&=-]*")


@pytest.mark.requirement("hermes:request:one-or-refused")
@pytest.mark.parametrize("name", _OPERATIONS)
@settings(max_examples=30)
@given(drawn=_INPUTS, beside=st.booleans())
@example(drawn={}, beside=True)
def test_any_json_input_maps_to_one_well_formed_request_or_is_refused(
    name: str, drawn: Mapping[str, Any], beside: bool
) -> None:
    """beside: what is drawn stands beside a good input, so that requests are made and not only refusals."""
    operation, values = _OPERATIONS[name], {**INPUTS[name], **drawn} if beside else drawn
    try:
        request = _map(name, values).request
    except InputRefused:
        assert values != INPUTS[name]
        return
    assert _TARGET.fullmatch(request.target)
    path = request.target.split("?")[0]
    assert len(path.split("/")) == len(operation.path.split("/"))
    assert not {".", ".."} & set(path.split("/"))
    assert request == _map(name, values).request
    if request.body is not None:
        sent = json.loads(request.body)
        assert isinstance(sent, dict)
        assert not {"session_key", "idempotency_key", "_aip"} & sent.keys()
    for header, value in request.headers:
        assert re.fullmatch(rb"[^\x00-\x08\x0a-\x1f\x7f]+", value), header
    assert KEY.encode() not in request.target.encode() + (request.body or b"")


@pytest.mark.requirement("hermes:request:one-or-refused")
@pytest.mark.parametrize("name", _OPERATIONS)
@settings(max_examples=8)
@given(value=_JSON.filter(lambda value: not isinstance(value, dict)))
def test_an_input_that_is_no_object_is_refused_by_its_schema(name: str, value: Any) -> None:
    assert operation_validator(_OPERATIONS[name].input).violations(value)
