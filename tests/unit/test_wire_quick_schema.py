"""What the quick check says beside the full validator: whatever it lets pass, the other one lets pass too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aip_hermes.contract import load_operations
from aip_hermes.contract.schemas import operation_schema
from aip_hermes.wire.quick_schema import quick
from aip_hermes.wire.schema import _quick, _validator
from tests.support.wire_objects import EXAMPLES, Example

SCHEMAS = {row.input: operation_schema(row.input) for row in load_operations().values()}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 400)
    | st.sampled_from([0.5, 1.0, 2.0, "", "a", "s1", "x" * 300, "a/b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "title", "body", "a", "session_id", "limit", "message"]), inner)
    ),
    max_leaves=12,
)
PIECES: list[Any] = [
    {"type": "integer"},
    {"type": ["string", "null"]},
    {"enum": ["a", None, True]},
    {"enum": [1, "a"]},
    {"const": "a"},
    {"const": {"a": 1}},
    {"const": 0},
    {"minLength": 1, "maxLength": 2},
    {"pattern": "^a"},
    {"minimum": 1, "exclusiveMaximum": 2},
    {"items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    {"prefixItems": [{"type": "null"}], "items": False},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"additionalProperties": {"type": "string"}, "maxProperties": 1},
    {"patternProperties": {"^a": False}, "properties": {"a": True}, "additionalProperties": False},
    {"not": {"required": ["a"]}},
    {"not": {"contains": {"const": 1}}},
    {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
    {"anyOf": [{"type": "integer"}, {"contains": {"type": "null"}}]},
    {"allOf": [{"type": "object"}, {"minProperties": 1}]},
    {"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "integer"}},
    {"dependentSchemas": {"a": {"required": ["id"]}}},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": ["array", "null"], "items": {"$ref": "#/$defs/tree"}}}},
    {"propertyNames": {"maxLength": 1}},
    True,
    False,
]


@pytest.mark.requirement("wire:schema:quick-agrees")
@pytest.mark.parametrize("schema", PIECES, ids=json.dumps)
@given(value=JSON)
def test_what_passes_quickly_holds(schema: Any, value: Any) -> None:
    full = Draft202012Validator(schema)
    if quick({"": schema}, "#")(value):
        assert full.is_valid(value)


@pytest.mark.requirement("wire:schema:quick-agrees")
@pytest.mark.parametrize("schema", [piece for piece in PIECES if "ontains" not in json.dumps(piece)], ids=json.dumps)
@given(value=JSON)
def test_what_it_can_judge_it_judges(schema: Any, value: Any) -> None:
    unknown = ("prefixItems", "patternProperties", "propertyNames", "uniqueItems", "const", "enum")
    if not any(word in json.dumps(schema) for word in unknown):
        assert quick({"": schema}, "#")(value) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.requirement("wire:schema:quick-agrees")
@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=15)
@given(value=JSON)
def test_published_inputs_are_judged_alike(name: str, value: Any) -> None:
    schema = SCHEMAS[name]
    if quick({"": schema}, "#")(value):
        assert Draft202012Validator(schema).is_valid(value)


def _spoilt(value: Any) -> Iterator[Any]:
    """Yield `value` with each of its members, at any depth, left out, replaced, or joined by a stranger."""
    if isinstance(value, dict):
        yield {**value, "stranger": 1}
        for name, member in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            yield from ({**value, name: other} for other in (None, 1, "", [], {}, *_spoilt(member)))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in _spoilt(member))


@pytest.mark.requirement("wire:schema:quick-agrees")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_published_objects_are_judged_alike_whole_and_spoilt(example: Example) -> None:
    full, holds = _validator(example.schema), _quick(example.schema)
    assert holds(example.value)
    spoilt = list(_spoilt(example.value))
    for value in spoilt[:: len(spoilt) // 100 + 1]:
        assert holds(value) == full.is_valid(value), value
