"""What the published input schemas accept and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aip_hermes.contract import load_operations
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.hermes_api.session_ids import new_session_id_problem
from aip_hermes.hermes_api.titles import clean_title, title_problem

ADDRESSED = ("session_get", "session_delete", "session_messages", "session_patch", "session_fork", "session_chat")
ISSUED = (
    "20260406_164014_74b2d1",
    "api_1796069436_fa077b4a",
    "Case:7;v=2",
    "a.b-c_d~e",
    "12345",
    "x" * 256,
    "x" * 300,
    "sp ace",
    "票据-é",
    "a/../b",
    "...",
    "C:drive",
    "tab\there",
    "?#%",
    "😀",
    " ",
)


def refusals(operation: str, value: object) -> list[str]:
    """Return `place: keyword` of each violation."""
    lines = operation_validator(load_operations()[operation].input).violations(value)
    return [": ".join(line.split(": ")[:2]) for line in lines]


def addressed(operation: str, session_id: object, **more: object) -> dict[str, Any]:
    message = {"message": "hello"} if operation == "session_chat" else {}
    return {"session_id": session_id, **message, **more}


@pytest.mark.requirement("contract:input:issued-ids")
@pytest.mark.parametrize("operation", ADDRESSED)
@pytest.mark.parametrize("session_id", ISSUED, ids=ascii)
def test_an_issued_id_passes(operation: str, session_id: str) -> None:
    assert refusals(operation, addressed(operation, session_id)) == []


@pytest.mark.requirement("contract:input:issued-ids")
@pytest.mark.parametrize("operation", ADDRESSED)
@pytest.mark.parametrize(
    ("session_id", "keyword"),
    [
        (".", "pattern"),
        ("..", "pattern"),
        ("a\0b", "pattern"),
        ("a\rb", "pattern"),
        ("a\n", "pattern"),
        ("\n", "pattern"),
        (".\n", "pattern"),
        ("\ud83d", "pattern"),
        ("", "minLength"),
        ("x" * 4097, "maxLength"),
        (7, "type"),
        (None, "type"),
        (["a"], "type"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_an_id_that_no_path_can_carry_is_refused(operation: str, session_id: object, keyword: str) -> None:
    assert refusals(operation, addressed(operation, session_id)) == [f"/session_id: {keyword}"]


@pytest.mark.requirement("contract:input:issued-ids")
@pytest.mark.parametrize("operation", ADDRESSED)
def test_a_missing_session_id_is_refused(operation: str) -> None:
    assert refusals(operation, {"message": "x"} if operation == "session_chat" else {}) == ["(root): required"]


NEW_ID_PLACES = [
    ("session_create", lambda new: {"id": new}, "/id"),
    ("session_create", lambda new: {"session_id": new}, "/session_id"),
    ("session_create", lambda new: {"body": {"id": new}}, "/body/id"),
    ("session_create", lambda new: {"body": {"session_id": new}}, "/body/session_id"),
    ("session_fork", lambda new: {"session_id": "s", "id": new}, "/id"),
    ("session_fork", lambda new: {"session_id": "s", "body": {"id": new}}, "/body/id"),
]


@pytest.mark.requirement("contract:input:new-ids")
@pytest.mark.parametrize(("operation", "put", "place"), NEW_ID_PLACES, ids=lambda value: value if value else "")
@pytest.mark.parametrize(
    "new",
    [
        "", " ", "\u3000", "x" * 257, "a\n", "\na", "a\tb", "\x1b", "\x7f", "a\x85", "..", "a..b", "a/b", "a\\b", "C:x",
        " z:", "\ud800", ".",
    ],
    ids=lambda value: ascii(value)[:20],
)  # fmt: skip
def test_an_id_against_the_rules_is_refused_wherever_it_stands(operation: str, put: Any, place: str, new: str) -> None:
    assert set(refusals(operation, put(new))) == {f"{place}: pattern"}


@pytest.mark.requirement("contract:input:new-ids")
@pytest.mark.parametrize(("operation", "put", "place"), NEW_ID_PLACES, ids=lambda value: value if value else "")
@pytest.mark.parametrize("new", [0, False, None, 12345, ["a"], {}], ids=repr)
def test_an_id_of_another_type_is_refused(operation: str, put: Any, place: str, new: object) -> None:
    assert refusals(operation, put(new)) == [f"{place}: type"]


@pytest.mark.requirement("contract:input:new-ids")
@pytest.mark.parametrize(("operation", "put", "place"), NEW_ID_PLACES, ids=lambda value: value if value else "")
@pytest.mark.parametrize(
    "new", ["a", "x" * 256, "  " + "x" * 256 + " ", "Case:7;v=2", "sp ace", "票据-é", "a.b", "1:x", "😀"]
)
def test_an_id_within_the_rules_passes(operation: str, put: Any, place: str, new: str) -> None:
    assert refusals(operation, put(new)) == []


@pytest.mark.requirement("contract:input:new-ids")
@settings(max_examples=80, deadline=None)
@given(
    st.text(max_size=8)
    | st.text(alphabet=" .:/\\aZ\n\t\x85\u3000\ud800", max_size=8)
    | st.text(alphabet="a \u3000", min_size=252, max_size=262)
)
def test_the_schema_and_the_rule_of_new_ids_agree(new: str) -> None:
    refused = bool(refusals("session_create", {"body": {"id": new}}))

    assert refused is (new_session_id_problem(new) is not None or new.strip() == ".")


@pytest.mark.requirement("contract:input:new-ids")
@pytest.mark.parametrize("new", ["20260406_164014_74b2d1", " 20260406_164014_74b2d1 "])
def test_a_fork_does_not_pass_for_a_continuation(new: str) -> None:
    assert refusals("session_fork", {"session_id": "s", "id": new}) == ["/id: pattern"]
    assert refusals("session_fork", {"session_id": "s", "body": {"id": new}}) == ["/body/id: pattern"]
    assert refusals("session_fork", {"session_id": "s", "body": {"id": new.strip() + "0"}}) == []
    assert refusals("session_create", {"body": {"id": new}}) == []


@pytest.mark.requirement("contract:input:new-ids")
def test_without_an_id_the_endpoint_makes_one() -> None:
    assert refusals("session_create", {}) == []
    assert refusals("session_create", {"body": {}}) == []


TITLE_PLACES = [
    ("session_create", lambda title: {"title": title}, "/title"),
    ("session_create", lambda title: {"body": {"title": title}}, "/body/title"),
    ("session_patch", lambda title: {"session_id": "s", "title": title}, "/title"),
    ("session_patch", lambda title: {"session_id": "s", "body": {"title": title}}, "/body/title"),
    ("session_fork", lambda title: {"session_id": "s", "title": title}, "/title"),
    ("session_fork", lambda title: {"session_id": "s", "body": {"title": title}}, "/body/title"),
]


@pytest.mark.requirement("contract:input:titles")
@pytest.mark.parametrize(("operation", "put", "place"), TITLE_PLACES, ids=lambda value: value if value else "")
@pytest.mark.parametrize(
    ("title", "keyword"),
    [
        ("x" * 100, None),
        ("x" * 101, "pattern"),
        ("e\u0301" * 50, None),
        ("e\u0301" * 50 + "x", "pattern"),
        ("😀" * 100, None),
        ("😀" * 101, "pattern"),
        ("  " + "x" * 100 + "\n", None),
        ("x" * 50 + "  \t " + "x" * 49, None),
        ("x" * 50 + "  \t " + "x" * 50, "pattern"),
        ("x\u200b" * 100, None),
        ("", None),
        ("   ", None),
        (None, None),
        (5, "type"),
    ],
    ids=lambda value: ascii(value)[:16],
)
def test_a_title_is_counted_after_clean_up(
    operation: str, put: Any, place: str, title: object, keyword: str | None
) -> None:
    assert refusals(operation, put(title)) == ([] if keyword is None else [f"{place}: {keyword}"])


@pytest.mark.requirement("contract:input:titles")
@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="ab \t\n\x00\x0b\x85\u00a0\u200b\u202e\u3000\ufeff\ufffa😀", min_size=90, max_size=140))
def test_the_schema_and_the_rule_of_titles_agree(title: str) -> None:
    refused = bool(refusals("session_create", {"body": {"title": title}}))

    assert refused is (title_problem(clean_title(title)) is not None)


@pytest.mark.requirement("contract:input:titles", "contract:input:new-ids")
@pytest.mark.parametrize("filler", [" ", "\u200b", "x", " x", "\u200b ", "x\u200b", "."])
def test_a_long_text_is_refused_or_taken_without_delay(filler: str) -> None:
    # Ambiguous repetition would take years here instead of milliseconds.
    long = "a" + filler * 20_000 + "\x00b!"
    for place in ("title", "id"):
        refusals("session_create", {"body": {place: long}})


@pytest.mark.requirement("contract:input:patch-closed")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"title": "T"}, []),
        ({"end_reason": "case_closed"}, []),
        ({"title": None, "end_reason": "done"}, []),
        ({"body": {"title": "T", "end_reason": "done"}}, []),
        ({"body": {"title": "T"}, "session_key": "k", "idempotency_key": "i"}, []),
        ({}, []),
        ({"color": 1}, ["(root): additionalProperties"]),
        ({"model": "x"}, ["(root): additionalProperties"]),
        ({"body": {"color": 1}}, ["/body: additionalProperties"]),
        ({"body": {"session_id": "s", "title": "T"}}, ["/body: additionalProperties"]),
        ({"body": []}, ["/body: type"]),
        ({"end_reason": ""}, ["/end_reason: pattern"]),
        ({"end_reason": "  "}, ["/end_reason: pattern"]),
        ({"end_reason": 5}, ["/end_reason: type"]),
        ({"end_reason": None}, ["/end_reason: type"]),
        ({"end_reason": "compression"}, ["/end_reason: not"]),
        ({"body": {"end_reason": "branched"}}, ["/body/end_reason: not"]),
        ({"body": {"end_reason": "x"}, "title": "T"}, ["/title: not"]),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_patch_changes_title_and_end_reason_only(value: dict[str, Any], expected: list[str]) -> None:
    assert refusals("session_patch", {"session_id": "s", **value}) == expected


@pytest.mark.requirement("contract:input:chat-message")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"message": "hi"}, []),
        ({"input": "hi"}, []),
        ({"prompt": "hi"}, []),
        ({"query": "hi"}, []),
        ({"message": "hi", "prompt": "other", "query": "other"}, []),
        ({"message": [{"type": "text", "text": "hi"}]}, []),
        ({"body": {"message": "hi", "system_message": "brief"}}, []),
        ({"body": {"input": [{"type": "text", "text": "hi"}]}}, []),
        ({"body": {}, "prompt": "hi"}, []),
        ({"body": {"system_message": "brief"}, "query": "hi"}, []),
        ({"message": "x" * 65_537}, []),
        ({}, ["(root): anyOf"]),
        ({"body": {}}, ["(root): anyOf"]),
        ({"system_message": "brief"}, ["(root): anyOf"]),
        ({"message": " \n"}, ["/message: pattern"]),
        ({"message": ""}, ["/message: pattern"]),
        ({"message": []}, ["/message: minItems"]),
        ({"message": 5}, ["/message: type"]),
        ({"message": {"text": "hi"}}, ["/message: type"]),
        ({"message": None}, ["/message: type"]),
        ({"prompt": " "}, ["/prompt: pattern"]),
        ({"prompt": ["hi"]}, ["/prompt: type"]),
        ({"body": {"message": " "}}, ["/body/message: pattern"]),
        ({"message": "hi", "system_message": 5}, ["/system_message: type"]),
        ({"body": {"message": "hi", "instructions": 5}}, ["/body/instructions: type"]),
        ({"body": "hi"}, ["/body: type"]),
        ({"message": "hi", "max_events": 0}, ["/max_events: minimum"]),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_turn_needs_a_message_where_one_is_read(value: dict[str, Any], expected: list[str]) -> None:
    assert refusals("session_chat", {"session_id": "s", **value}) == expected


@pytest.mark.requirement("contract:input:no-effect-no-entry")
@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ("session_create", {"body": {"title": "T"}, "id": "a"}, ["/id: not"]),
        ("session_create", {"body": {}, "session_id": "a", "title": "T"}, ["/session_id: not", "/title: not"]),
        ("session_create", {"body": {}, "model": "m", "system_prompt": "p"}, ["/model: not", "/system_prompt: not"]),
        ("session_create", {"body": {"body": {"id": "a"}}}, ["/body/body: not"]),
        ("session_create", {"id": "a", "session_id": "b"}, ["(root): not"]),
        ("session_create", {"body": {"id": "a", "session_id": "b"}}, ["/body: not"]),
        ("session_fork", {"session_id": "s", "body": {}, "id": "a"}, ["/id: not"]),
        ("session_fork", {"session_id": "s", "body": {"session_id": "a"}}, ["/body/session_id: not"]),
        ("session_fork", {"session_id": "s", "body": {"session_key": "k"}}, ["/body/session_key: not"]),
        ("session_chat", {"session_id": "s", "body": {"message": "x"}, "message": "y"}, ["/message: not"]),
        ("session_chat", {"session_id": "s", "body": {"message": "x", "session_id": "s"}}, ["/body/session_id: not"]),
        ("session_chat", {"session_id": "s", "body": {"message": "x", "session_key": "k"}}, ["/body/session_key: not"]),
        ("session_chat", {"session_id": "s", "body": {"message": "x", "prompt": "y"}}, ["/body/prompt: not"]),
        (
            "session_chat",
            {"session_id": "s", "body": {"message": "x"}, "system_message": "y"},
            ["/system_message: not"],
        ),
        ("health", {"session_id": "s"}, ["(root): additionalProperties"]),
        ("models", {"limit": 1}, ["(root): additionalProperties"]),
    ],
)
def test_a_member_without_effect_is_refused(operation: str, value: object, expected: list[str]) -> None:
    assert refusals(operation, value) == expected


@pytest.mark.requirement("contract:input:session-key")
@pytest.mark.parametrize("operation", [*ADDRESSED, "session_create", "sessions_list"])
@pytest.mark.parametrize(
    ("key", "keyword"),
    [
        ("family", None),
        ("x" * 256, None),
        ("a\tb", None),
        ("Ünï", None),
        ("x" * 257, "maxLength"),
        ("", "pattern"),
        (" ", "pattern"),
        ("\t", "pattern"),
        ("a\r\nX: y", "pattern"),
        ("a\n", "pattern"),
        ("\0", "pattern"),
        ("\x7f", "pattern"),
        (5, "type"),
    ],
    ids=lambda value: ascii(value)[:16],
)
def test_a_session_key_is_short_text_for_one_header(operation: str, key: object, keyword: str | None) -> None:
    value = {"session_key": key} if operation not in ADDRESSED else addressed(operation, "s", session_key=key)

    assert refusals(operation, value) == ([] if keyword is None else [f"/session_key: {keyword}"])


@pytest.mark.requirement("contract:input:list-limits")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, []),
        ({"limit": 0}, []),
        ({"limit": 1}, []),
        ({"limit": 200, "offset": 1_000_001, "source": "api_server", "include_children": False}, []),
        ({"limit": 201}, ["/limit: maximum"]),
        ({"limit": -1}, ["/limit: minimum"]),
        ({"limit": "abc"}, ["/limit: type"]),
        ({"limit": 1.5}, ["/limit: type"]),
        ({"limit": True}, ["/limit: type"]),
        ({"limit": None}, ["/limit: type"]),
        ({"offset": -1}, ["/offset: minimum"]),
        ({"include_children": "yes"}, ["/include_children: type"]),
        ({"query": {"limit": 200}}, []),
        ({"query": {"limit": "200", "offset": "0", "include_children": "true"}}, []),
        ({"query": {"limit": 201}}, ["/query/limit: anyOf"]),
        ({"query": {"limit": "201"}}, ["/query/limit: anyOf"]),
        ({"query": {"limit": "20\n"}}, ["/query/limit: anyOf"]),
        ({"query": {"limit": "abc"}}, ["/query/limit: anyOf"]),
        ({"query": {"source": " "}}, ["/query/source: pattern"]),
        ({"query": {"colour": "red"}}, ["/query: additionalProperties"]),
        ({"query": []}, ["/query: type"]),
    ],
    ids=repr,
)
def test_a_list_query_is_refused_or_exact(value: object, expected: list[str]) -> None:
    assert refusals("sessions_list", value) == expected


@pytest.mark.requirement("contract:input:list-limits")
@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ({"limit": 200, "offset": 1_000_001}, []),
        ({"limit": 201}, ["/limit: maximum"]),
        ({"limit": "5"}, ["/limit: type"]),
        ({"offset": -1}, ["/offset: minimum"]),
        ({"query": {"limit": "200", "offset": 0}}, []),
        ({"query": {"limit": "201"}}, ["/query/limit: anyOf"]),
        ({"query": {"source": "x"}}, ["/query: additionalProperties"]),
    ],
    ids=repr,
)
def test_a_page_of_messages_is_refused_or_exact(page: dict[str, Any], expected: list[str]) -> None:
    assert refusals("session_messages", {"session_id": "s", **page}) == expected
