"""Id rules, title rules and the shapes of Hermes' objects."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes import hermes_api
from aip_hermes.hermes_api import (
    HermesCode,
    clean_title,
    error_body,
    generated_session_id,
    header_error_body,
    is_continuation_id,
    list_entry,
    message_object,
    new_session_id_problem,
    next_lineage_title,
    refused_new_id,
    session_object,
    title_problem,
    unauthorized_body,
)

ROW: dict[str, Any] = dict.fromkeys(hermes_api.SESSION_ROW_FIELDS) | {
    "id": "s1",
    "source": "api_server",
    "system_prompt": "secret prompt",
    "model_config": None,
    "session_key": "memory",
}


@pytest.mark.requirement("hermes_api:session:whitelist")
def test_a_session_object_flags_the_prompt_and_shows_nothing_else() -> None:
    shown = session_object(ROW)

    assert tuple(shown) == hermes_api.SESSION_FIELDS
    assert len(shown) == 21
    assert shown["has_system_prompt"] is True
    assert "secret prompt" not in repr(shown)
    assert "memory" not in repr(shown)


@pytest.mark.parametrize(
    ("model_config", "flag"),
    [
        (None, False),
        ("", False),
        ('{"_branched_from": "s0"}', False),
        ('{"_branched_from": "s0", "max_tokens": 5}', True),
        ({"max_tokens": 5}, True),
        ("not json", True),
    ],
)
@pytest.mark.requirement("hermes_api:session:whitelist")
def test_a_lineage_marker_alone_is_no_model_configuration(model_config: object, flag: bool) -> None:
    assert session_object(ROW | {"model_config": model_config})["has_model_config"] is flag


@pytest.mark.requirement("hermes_api:session:whitelist")
def test_a_list_entry_adds_only_what_the_listing_computed() -> None:
    entry = list_entry(ROW | {"last_active": 1.5, "preview": "hi", "unread": True})

    assert set(entry) == {*hermes_api.SESSION_FIELDS, "last_active", "preview"}


@pytest.mark.requirement("hermes_api:message:whitelist")
def test_a_message_object_has_twelve_members() -> None:
    row: dict[str, Any] = dict.fromkeys(hermes_api.MESSAGE_FIELDS) | {"id": 7, "api_content": "hidden"}

    shown = message_object(row)

    assert tuple(shown) == hermes_api.MESSAGE_FIELDS
    assert len(shown) == 12
    assert "hidden" not in repr(shown)


@pytest.mark.parametrize(
    "value",
    [
        "case-1",
        "20260406_164014_74b2d1",
        "Case:7;v=2",
        "a.b-c_d~e",
        "12345",
        "x" * 256,
        " padded ",
        "é ?#%",
        "漢字",
        "🙂",
    ],
)
@pytest.mark.requirement("hermes_api:session-id:rules")
def test_usual_ids_are_free_of_problems(value: str) -> None:
    assert new_session_id_problem(value) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "x" * 257,
        "a..b",
        "a/b",
        "a\\b",
        "C:x",
        "c:",
        "a\nb",
        "a\0b",
        "a\tb",
        "\x1b",
        "a\x85b",
        "a\x7f",
        "a\ud800",
    ],
)
@pytest.mark.requirement("hermes_api:session-id:rules")
def test_unsafe_ids_have_a_problem_that_does_not_repeat_them(value: str) -> None:
    problem = new_session_id_problem(value)

    assert problem is not None
    assert len(problem) < 80


@pytest.mark.parametrize(("value", "taken"), [("a\tb", True), ("a\x1bb", True), ("a\nb", False), ("1:x", True)])
@pytest.mark.requirement("hermes_api:session-id:rules")
def test_an_endpoint_refuses_fewer_control_characters_than_a_caller(value: str, taken: bool) -> None:
    assert (refused_new_id(value) is None) is taken


def test_generated_ids_and_continuations_have_the_forms_of_hermes() -> None:
    assert generated_session_id(now_ms=1_796_072_008_999, random_hex="0" * 24 + "c8309f1a") == "api_1796072008_c8309f1a"
    assert is_continuation_id("20261130_205443_18b94a")
    assert not is_continuation_id("api_1796072008_c8309f1a")
    assert not is_continuation_id("20261130_205443_18b94a\n")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("  a\u200b\n\t b\u0007c  ", "a bc"),
        (None, None),
        ("", None),
        (" \u2060\n", None),
        (42, "42"),
        ("a\ud83db", "a\ufffdb"),
        ("a\0b", "ab"),
        ("family 👨\u200d👩", "family 👨👩"),
        ("e\u0301", "e\u0301"),
    ],
)
@pytest.mark.requirement("hermes_api:title:cleaning")
def test_titles_are_cleaned(value: object, stored: str | None) -> None:
    assert clean_title(value) == stored


@pytest.mark.parametrize("letter", ["t", "漢", "🙂", "\u0301"])
@pytest.mark.requirement("hermes_api:title:cleaning")
def test_the_limit_of_a_title_counts_code_points_after_cleaning(letter: str) -> None:
    assert title_problem(clean_title("  " + letter * 100 + "\u200b ")) is None
    assert title_problem(clean_title(letter * 101)) is not None
    assert title_problem(None) is None


@pytest.mark.parametrize(
    ("title", "used", "expected"),
    [
        ("Case one", [], "Case one"),
        ("Case one", ["Case one"], "Case one #2"),
        ("Case one #2", ["Case one", "Case one #2", "Case one #7"], "Case one #8"),
        ("Case one #2", ["Case one #2"], "Case one #3"),
        ("fork", ["fork", "forklift #9", "fork #x"], "fork #2"),
        ("#5", ["#5"], "#5 #2"),
        (" #5", [" #5"], " #5 #2"),
    ],
)
@pytest.mark.requirement("hermes_api:title:lineage")
def test_a_lineage_takes_the_next_number(title: str, used: list[str], expected: str) -> None:
    assert next_lineage_title(title, used) == expected


@pytest.mark.requirement("hermes_api:error:bodies")
def test_error_bodies_have_the_documented_members() -> None:
    assert error_body("text", code=HermesCode.INVALID_TITLE) == {
        "error": {"message": "text", "type": "invalid_request_error", "param": None, "code": "invalid_title"}
    }
    assert error_body("text")["error"]["code"] is None
    assert unauthorized_body() == {
        "error": {"message": "Invalid API key", "type": "invalid_request_error", "code": "invalid_api_key"}
    }
    assert header_error_body("text") == {"error": {"message": "text", "type": "invalid_request_error"}}


def test_every_public_name_exists() -> None:
    assert sorted(hermes_api.__all__, key=str.lower) == sorted(set(hermes_api.__all__), key=str.lower)
    assert all(hasattr(hermes_api, name) for name in hermes_api.__all__)
