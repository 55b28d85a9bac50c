"""Models, schemas and examples agree, object by object and member by member."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from aip_hermes import wire
from tests.support.wire_objects import EXAMPLES, Example, adapter

ALL = pytest.mark.parametrize("name", EXAMPLES)
_ABSENT = object()
_TAGS = {
    "message_part": ("type",),
    "approval_policy#/$defs/approver_selector": ("type",),
    "approval_policy#/$defs/approval_rule": ("operator",),
}
"""What tells the variants of a union apart; no default stands in for it."""


def _verdicts(example: Example, value: object) -> tuple[bool, bool]:
    """Does the model decode it, does the schema accept it? The protocol's rules are not asked."""
    try:
        adapter(example).validate_python(value)
        decodes = True
    except ValidationError as exc:
        decodes = wire.breaks_rules_only(exc)
    return decodes, not wire.schema_violations(example.schema, value)


def _required(example: Example) -> list[str]:
    return [field.alias or name for name, field in example.type.model_fields.items() if field.is_required()]


def _changed(example: Example, member: str, value: object) -> dict[str, Any]:
    changed = {k: v for k, v in example.value.items() if k != member}
    return changed if value is _ABSENT else {**changed, member: value}


@pytest.mark.requirement("wire:objects:schema")
@ALL
def test_the_example_validates_against_its_schema(name: str) -> None:
    assert wire.schema_violations(EXAMPLES[name].schema, EXAMPLES[name].value) == []


@pytest.mark.requirement("wire:objects:round-trip")
@ALL
def test_the_example_is_written_again_byte_for_byte(name: str) -> None:
    example = EXAMPLES[name]
    read = example.type.model_validate(example.value)
    assert wire.write_json(read.wire()) == wire.write_json(example.value)
    assert wire.lenient(example.type, example.value) == read


@ALL
def test_the_example_has_every_member_of_its_model(name: str) -> None:
    example = EXAMPLES[name]
    members = [field.alias or name for name, field in example.type.model_fields.items()]
    missing = {"CancelTarget": ["action"], "ReceiptQueryRequest": ["receipt_id"]}.get(name, [])
    expected = [member for member in members if member not in missing]
    assert list(example.value)[: len(expected)] == expected


@pytest.mark.requirement("wire:objects:unknown-members")
@ALL
def test_an_unknown_member_is_refused_by_model_and_schema(name: str) -> None:
    example = EXAMPLES[name]
    stranger = {**example.value, "stranger": 1}
    assert _verdicts(example, stranger) == ((True, True) if name == "Binding" else (False, False))


@pytest.mark.requirement("wire:objects:unknown-members")
@ALL
def test_a_client_ignores_an_unknown_member(name: str) -> None:
    example = EXAMPLES[name]
    read = wire.lenient(example.type, {**example.value, "stranger": 1})
    kept = {"stranger": 1} if name == "Binding" else {}
    assert read.wire() == {**example.value, **kept}


@pytest.mark.requirement("wire:objects:presence", "wire:objects:schema")
@ALL
def test_a_missing_member_is_refused_exactly_where_it_is_required(name: str) -> None:
    example = EXAMPLES[name]
    verdicts = {member: _verdicts(example, _changed(example, member, _ABSENT)) for member in example.value}
    needed = {*_required(example), *_TAGS.get(example.schema, ()), *({"session"} if name == "CancelTarget" else ())}
    assert verdicts == {member: (member not in needed,) * 2 for member in example.value}


@pytest.mark.requirement("wire:objects:presence")
@ALL
def test_a_null_member_is_judged_alike_by_model_and_schema(name: str) -> None:
    example = EXAMPLES[name]
    verdicts = {member: _verdicts(example, _changed(example, member, None)) for member in example.value}
    assert {member for member, (decodes, accepted) in verdicts.items() if decodes != accepted} == set()


@pytest.mark.requirement("wire:objects:schema", "wire:objects:strict-types")
@ALL
def test_a_member_of_another_type_is_judged_alike_by_model_and_schema(name: str) -> None:
    example = EXAMPLES[name]
    wrong: list[object] = ["text", 7, -1, 2**64, 0.5, True, [3], {"odd": 1}]
    least = {member: example.value[member] for member in (*_required(example), *_TAGS.get(example.schema, ()))}
    for member in example.value:
        for value in wrong:
            decodes, accepted = _verdicts(example, {**least, member: value})
            bad_time = value == "text" and member.endswith("_at") and accepted and not decodes
            assert decodes == accepted or bad_time, (member, value)


@pytest.mark.requirement("wire:objects:presence")
@ALL
def test_absent_members_are_not_written_and_defaulted_ones_are(name: str) -> None:
    example = EXAMPLES[name]
    fields = {field.alias or name: field for name, field in example.type.model_fields.items()}
    least = {member: example.value[member] for member in (*_required(example), *_explaining(name))}
    always = [n for n, f in fields.items() if not f.is_required() and not f.default_factory and f.default is not None]
    assert set(example.type.model_validate(least).wire()) == {*least, *always}


def _explaining(name: str) -> dict[str, Any]:
    """What a rule asks for beyond the required members of the example."""
    explanations = {
        "CancelTarget": ("session",),
        "ReceiptQueryRequest": ("chain_id",),
        "ActionResult": ("error",),
        "ActionStatus": ("result_status",),
        "ActionTransaction": ("compensation_for",),
        "CapabilityContract": ("side_effects",),
        "CompensationContract": ("compensation_capability_id",),
        "ReceiptChain": ("root_hash",),
        "TransactionContract": ("supported_modes",),
    }
    return {member: EXAMPLES[name].value[member] for member in explanations.get(name, ())}


@ALL
def test_every_schema_refuses_what_is_no_object(name: str) -> None:
    example = EXAMPLES[name]
    values: list[object] = [None, [], "text", 1]
    assert [_verdicts(example, value) for value in values] == [(False, False)] * 4


def _titles(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "title" in schema:
            yield str(schema["title"])
        for inner in schema.values():
            yield from _titles(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _titles(inner)


def test_every_model_and_every_object_schema_has_an_example() -> None:
    models = {
        name
        for name in wire.__all__
        if isinstance(getattr(wire, name), type) and issubclass(getattr(wire, name), wire.Wire) and name != "Wire"
    }
    assert set(EXAMPLES) == models
    titles = {title for name in wire.schema_names() for title in _titles(wire.load_schema(name))}
    assert titles <= models


@pytest.mark.parametrize("name", wire.schema_names())
def test_a_schema_is_closed_and_refers_to_its_siblings_only(name: str) -> None:
    schema = wire.load_schema(name)
    Draft202012Validator.check_schema(schema)
    for part in _parts(schema):
        if part.get("type") == "object" and part.get("properties"):
            assert part["additionalProperties"] is (part.get("title") == "Binding")
        if "$ref" in part:
            file = part["$ref"].partition("#")[0]
            assert not file or file.removesuffix(".schema.json") in wire.schema_names()


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from _parts(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _parts(inner)


def test_an_unknown_schema_is_no_schema() -> None:
    with pytest.raises(KeyError):
        wire.load_schema("../principal")
    with pytest.raises(KeyError):
        wire.schema_violations("no_such", {})
