"""The strict reader of JSON text, and the writer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aip_hermes import wire

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert wire.read_json(wire.write_json(value)) == value
    assert wire.read_json(wire.write_json(value, indent=2)) == value
    assert wire.read_json(json.dumps(value)) == value


@pytest.mark.requirement("wire:json:strict-reader")
@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ('{"a": 1,\n "a": 2}', 2, 2, "a member name is repeated in its object"),
        ('[{"b": {"a": 1, "\\u0061": 2}}]', 1, 17, "a member name is repeated in its object"),
        ('{"a": NaN}', 1, 7, "a value is expected here"),
        ("[-Infinity]", 1, 2, "a value is expected here"),
        ("[1,\n]", 2, 1, "a comma stands before the end of an array"),
        ('{"a":1,}', 1, 8, "a comma stands before the end of an object"),
        ("[1 2]", 1, 4, "a comma or ] is expected here"),
        ('{"a" 1}', 1, 6, "a colon is expected here"),
        ("{a: 1}", 1, 2, "a member name in double quotes is expected here"),
        ("{'a': 1}", 1, 2, "a member name in double quotes is expected here"),
        ("", 1, 1, "the text ends early"),
        ("[1", 1, 3, "the text ends early"),
        ('{"a":', 1, 6, "the text ends early"),
        ('["abc', 1, 2, "a string is not closed"),
        ('["a\tb"]', 1, 4, "a control character stands in a string"),
        ('["\\x"]', 1, 3, "an unknown escape"),
        ('["\\u12g4"]', 1, 3, "an escape lacks four hexadecimal digits"),
        ('["\\ud800"]', 1, 3, "a lone surrogate stands in a string"),
        ('["\\ud800\\u0041"]', 1, 3, "a lone surrogate stands in a string"),
        ('["\\udc00"]', 1, 3, "a lone surrogate stands in a string"),
        ('["\ud800"]', 1, 3, "a lone surrogate stands in a string"),
        ("1 2", 1, 3, "more text after the value"),
        ("01", 1, 2, "more text after the value"),
        ("1.", 1, 2, "more text after the value"),
        ("+1", 1, 1, "a value is expected here"),
        ("-", 1, 1, "a value is expected here"),
        ("nul", 1, 1, "a value is expected here"),
        ("// note\n1", 1, 1, "a value is expected here"),
        ("\u00a01", 1, 1, "a value is expected here"),
        ("1e999", 1, 1, "a number is out of range"),
        ("[" + "9" * 310 + "]", 1, 2, "a number is too long"),
        ("\n" + "[" * 129 + "]" * 129, 2, 129, "nested deeper than 128"),
        ('{"a":' * 129 + "1" + "}" * 129, 1, 641, "nested deeper than 128"),
        ("[" * 100_000, 1, 129, "nested deeper than 128"),
        ("\ufeff1", 1, 1, "a byte order mark"),
        (b'["\xff"]', 1, 3, "not UTF-8"),
        (b'["\xc3\xa9",\n\xe9]', 2, 1, "not UTF-8"),
        (b'["\xed\xa0\x80"]', 1, 3, "not UTF-8"),
        ('"a"'.encode("utf-16-le"), 1, 2, "a control character stands in a string"),
    ],
)
def test_text_that_is_no_json_is_refused_with_its_place(text: str | bytes, line: int, column: int, reason: str) -> None:
    with pytest.raises(wire.JsonProblem) as refused:
        wire.read_json(text)
    assert (refused.value.line, refused.value.column, refused.value.reason) == (line, column, reason)


@pytest.mark.requirement("wire:json:strict-reader", "wire:objects:no-echo")
def test_a_refusal_never_repeats_the_text() -> None:
    for text in ('{"hunter2": 1, "hunter2": 2}', '["hunter2', '["hunter2\t"]', "hunter2", '[1, hunter2, "\\q"]'):
        with pytest.raises(wire.JsonProblem) as refused:
            wire.read_json(text)
        assert "hunter2" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None


@pytest.mark.requirement("wire:json:strict-reader")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" [1, -0, 1.5e3] \r\n", [1, 0, 1500.0]),
        ('{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}', {"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}),
        ("[" * 128 + "]" * 128, json.loads("[" * 128 + "]" * 128)),
        ("[" + "[]," * 200 + "[]]", [[]] * 201),
        ("18446744073709551616", 2**64),
        ("9" * 309, int("9" * 309)),
        ('"\\ud83d\\ude00 \\\\ud800"', "😀 \\ud800"),
        ('["\\ud83d\\ude00", "' + "7" * 400 + '"]', ["😀", "7" * 400]),
        ('{"\\"": "\\/\\b\\f\\n\\r\\t\\u00e9", "n": [true, false, null, 2e-3, {}, []], "t": "' + "1" * 310 + '"}',
         {'"': "/\b\f\n\r\té", "n": [True, False, None, 0.002, {}, []], "t": "1" * 310}),
    ],
)  # fmt: skip
def test_valid_text_is_read_whole(text: str, value: Any) -> None:
    assert wire.read_json(text) == value
    assert wire.read_json(text.encode()) == value


@pytest.mark.requirement("wire:json:strict-reader")
def test_one_byte_order_mark_is_accepted_where_it_is_allowed() -> None:
    assert wire.read_json(b"\xef\xbb\xbf[1]", allow_bom=True) == [1]
    with pytest.raises(wire.JsonProblem):
        wire.read_json(b"\xef\xbb\xbf\xef\xbb\xbf[1]", allow_bom=True)


def test_text_is_written_plainly() -> None:
    assert wire.write_json({"b": "é\u2028", "a": [1.5, None]}) == '{"b":"é\u2028","a":[1.5,null]}'.encode()
    assert wire.write_json({"a": [1]}, indent=2) == b'{\n  "a": [\n    1\n  ]\n}'


def test_a_lone_surrogate_is_written_as_a_replacement_character() -> None:
    assert wire.write_json("a\ud800b") == '"a\ufffdb"'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_json_cannot_say_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.write_json(value)
