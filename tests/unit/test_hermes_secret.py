"""A credential in memory."""

from __future__ import annotations

import copy
import json
import pickle
import traceback

import pytest

from aip_hermes.secret import MAX_SECRET_BYTES, Secret

_TEXT = "planted-key-0123456789"


@pytest.mark.requirement("hermes:secret:shows-itself-nowhere")
def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(_TEXT)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", f"{[secret]}", repr({"key": secret})]
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError) as caught:
            attempt(secret)
        shown += traceback.format_exception(caught.value)
    assert not any(_TEXT in text for text in shown)
    assert not hasattr(secret, "__dict__")
    assert secret.reveal() == _TEXT


@pytest.mark.requirement("hermes:secret:equality")
def test_secrets_are_compared_by_value() -> None:
    assert Secret(_TEXT) == Secret(_TEXT)
    assert Secret(_TEXT) != Secret(_TEXT + "x")
    assert Secret(_TEXT) != _TEXT
    assert len({Secret(_TEXT), Secret(_TEXT)}) == 1


@pytest.mark.requirement("hermes:secret:shows-itself-nowhere")
@pytest.mark.parametrize("text", ["", " ", "a b", "a\n", "a\tb", "a\0b", "a\x7fb", "a\u2028b", "\ud800", "é" * 8193])
def test_what_no_header_carries_is_no_secret(text: str) -> None:
    with pytest.raises(ValueError, match="a credential") as caught:
        Secret(text)
    assert not text.strip() or text not in str(caught.value)


def test_the_longest_secret_is_accepted() -> None:
    assert len(Secret("x" * MAX_SECRET_BYTES).reveal()) == MAX_SECRET_BYTES
