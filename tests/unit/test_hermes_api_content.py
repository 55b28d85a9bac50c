"""What a turn's message says. Each case was tried on release 0.19.0."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.embedded.api.message_input import turn_input
from aip_hermes.hermes.wanted import sha256_text, wanted_facts
from aip_hermes.hermes_api import says_something, stored_text

_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def _text(value: object, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": value}


@pytest.mark.requirement("hermes:api:message-content")
@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("  padded  ", "  padded  "),
        ("x" * 70_000, "x" * 65_536),
        ([_text("a" * 60_000), _text("b" * 60_000)], "a" * 60_000 + "\n" + "b" * 60_000),
        ([_text("a" * 70_000)], "a" * 65_536),
        ([_text("a"), _text(""), _text("b")], "a\nb"),
        ([_text("a"), 5, None, ["x"], "bare"], "a\nbare"),
        ([_text(5), _text("x", "INPUT_TEXT")], "5\nx"),
        ([_text("a", " Text "), {"type": "text"}], "a"),
        ([_text("a"), _PICTURE, _text("b")], "a\n[screenshot]\nb"),
        ([_text("a")] * 1_001, "\n".join("a" * 1_000)),
    ],
)
def test_a_message_is_stored_as_release_0_19_0_stores_it(message: Any, stored: str) -> None:
    assert says_something(message)
    assert stored_text(message) == stored
    assert turn_input({"message": message}).stored_text == stored
    assert wanted_facts(new_id=None, body={"message": message})["text_sha256"] == sha256_text(stored)


@pytest.mark.requirement("hermes:api:message-content")
@pytest.mark.parametrize(
    "message",
    [
        "",
        " \n",
        [],
        ["bare"],
        [5],
        [None],
        [{}],
        [_text("")],
        [_text(" ")],
        [_text(None)],
        [_text(0)],
        5,
        {"a": 1},
        None,
    ],
)
def test_a_message_that_says_nothing_is_none(message: Any) -> None:
    assert not says_something(message)
