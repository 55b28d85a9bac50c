"""Canonical JSON and hashes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aip_hermes import wire

pytestmark = pytest.mark.requirement("wire:canonical:bytes")

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_canonical_json_reads_back_as_the_same_value_and_is_its_own_canonical_form(value: Any) -> None:
    once = wire.canonical_json(value)
    assert wire.read_json(once) == value
    assert wire.canonical_json(wire.read_json(once)) == once


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_the_order_of_members_does_not_matter(value: dict[str, Any]) -> None:
    assert wire.canonical_json(dict(reversed(value.items()))) == wire.canonical_json(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_spelled_so_that_it_stays_itself(value: float) -> None:
    spelled = wire.canonical_json(value).decode()
    assert json.loads(spelled) == value
    assert "e+" not in spelled
    assert "e-0" not in spelled


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": {"d": [3, 2], "c": None}}, '{"a":{"c":null,"d":[3,2]},"b":1}'),
        ({"\U0001f600": 1, "\uffff": 2, "é": 3, "z": 4, "Z": 5}, '{"Z":5,"z":4,"é":3,"\uffff":2,"\U0001f600":1}'),
        ('"\\/\b\f\n\r\t\x00\x1f\x7fé\u2028', '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7fé\u2028"'),
        ({"empty": [], "none": {}}, '{"empty":[],"none":{}}'),
        ([True, 1, 2**64, -5], "[true,1,18446744073709551616,-5]"),
        ([1e15, 1e16, 1.5e300, 0.1, 1.0, -0.0], "[1000000000000000.0,1e16,1.5e300,0.1,1.0,-0.0]"),
        ([0.0001, 1e-05, -1.5e-05, 1e-06, 2.5e-10], "[0.0001,0.00001,-0.000015,1e-6,2.5e-10]"),
        ({"1e-05": "1e+16", "x": 1e16}, '{"1e-05":"1e+16","x":1e16}'),
        ((1, 2), "[1,2]"),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_canonical_json_is_spelled_exactly_so(value: object, text: str) -> None:
    assert wire.canonical_json(value) == text.encode()


def test_the_hash_is_the_lower_case_hex_sha_256_of_the_canonical_bytes() -> None:
    assert wire.sha256_hex({"b": 1, "a": 2}) == sha256(b'{"a":2,"b":1}').hexdigest()


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}])
def test_what_json_cannot_say_has_no_canonical_form(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.canonical_json(value)
