"""Published schemas stand alone; violations are bounded and tell no values."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.contract import ContractFileError, Operation, Validator, load_operations, operation_schema
from aip_hermes.contract.schemas import operation_validator, self_contained
from aip_hermes.contract.validation import MAX_VIOLATIONS

ROWS = list(load_operations().values())
FILES = sorted({file for row in ROWS for file in (row.input, row.output)})


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [target for entry in node for target in references(entry)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [target for value in node.values() for target in references(value)]


@pytest.mark.requirement("contract:published:self-contained")
@pytest.mark.parametrize("file", FILES)
def test_a_published_schema_stands_alone(file: str) -> None:
    schema = operation_schema(file)
    pieces = set(schema.get("$defs", {}))

    assert schema["type"] == "object"
    assert {target.removeprefix("#/$defs/") for target in references(schema)} == pieces
    assert not {"$schema", "$id", "$comment"} & set(schema)
    operation_validator(file)


@pytest.mark.requirement("contract:published:self-contained")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_input_schema_has_examples_that_hold(row: Operation) -> None:
    examples = operation_schema(row.input)["examples"]

    assert examples
    assert [operation_validator(row.input).violations(example) for example in examples] == [[]] * len(examples)


@pytest.mark.requirement("contract:published:self-contained")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_output_is_an_object_and_takes_our_member(row: Operation) -> None:
    checked = operation_validator(row.output)
    answer = operation_schema(row.output).get("examples", [{"object": "list", "data": []}])[0]

    assert checked.violations({**answer, "_aip": {"session": None}}) == []
    assert checked.violations(None) == ["(root): type: must be object, not null"]


@pytest.mark.requirement("contract:published:self-contained")
@pytest.mark.parametrize("target", ["https://example.test/x.json", "other.json#/$defs/a", "definitions.json#/$defs/no"])
def test_a_reference_that_leads_elsewhere_stops_the_start(target: str) -> None:
    with pytest.raises(ContractFileError, match="is no shared piece"):
        self_contained({"properties": {"a": {"$ref": target}}}, shared={"$defs": {"a": {}}}, name="x.json")


@pytest.mark.requirement("contract:published:self-contained")
def test_shared_pieces_come_along_with_what_they_refer_to() -> None:
    shared = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}, "c": {}}}
    whole = self_contained({"$ref": "definitions.json#/$defs/a", "$comment": "gone"}, shared=shared, name="x.json")

    assert whole == {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}}}
    assert Validator(whole).violations([[], [[]]]) == []


@pytest.mark.requirement("contract:published:self-contained")
def test_a_validator_follows_no_foreign_reference() -> None:
    with pytest.raises(ValueError, match="nothing outside itself"):
        Validator({"$ref": "https://example.test/x.json"})


@pytest.mark.requirement("contract:published:self-contained")
def test_a_missing_schema_file_is_named() -> None:
    with pytest.raises(ContractFileError, match=r"schemas/operations/none\.json is missing"):
        operation_schema("none.json")


@pytest.mark.requirement("contract:violations:bounded")
def test_at_most_sixteen_violations_are_told() -> None:
    many = Validator({"items": {"type": "object"}}).violations(list(range(10_000)))

    assert len(many) == MAX_VIOLATIONS
    assert many[0] == "/0: type: must be object, not an integer"


@pytest.mark.requirement("contract:violations:bounded")
def test_a_violation_is_one_line_of_bounded_length() -> None:
    schema = {
        "additionalProperties": {"additionalProperties": {"type": "null"}},
        "maxProperties": 1,
        "properties": {"closed": {"additionalProperties": False}},
    }
    name = "n" * 5_000 + "\n\x1b[31m\ud800"
    told = Validator(schema).violations(
        {name: {name: 1}, "a/b~\n\x1b": {"x": 1}, "closed": {f"{i}{name}": 1 for i in range(100)}}
    )

    assert len(told) == 4
    assert all(len(line) < 1_200 and line.isprintable() for line in told)
    assert "/a~1b~0\\n\\u001b/x: type: must be null, not an integer" in told


@pytest.mark.requirement("contract:violations:bounded")
def test_a_deep_place_is_cut() -> None:
    schema = {
        "$ref": "#/$defs/branch",
        "$defs": {"branch": {"type": "object", "additionalProperties": {"$ref": "#/$defs/branch"}}},
    }
    value: Any = 1
    for _ in range(20):
        value = {"n" * 64: value}
    (told,) = Validator(schema).violations(value)
    place, _, rule = told.partition("…: ")

    assert place == ("/" + "n" * 64) * 3 + "/" + "n" * 59
    assert rule == "type: must be object, not an integer"


@pytest.mark.requirement("contract:violations:bounded")
def test_the_same_violation_is_told_once() -> None:
    assert Validator({"required": ["a", "b"]}).violations({}) == ["(root): required: missing `a`, `b`"]


@pytest.mark.requirement("contract:violations:bounded")
def test_a_value_nested_beyond_reason_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    told = Validator({"type": "object"}).violations(deep)
    while deep:  # Taken apart by hand: freeing it in one go would recurse.
        deep = deep.pop()

    assert told == ["(root): nested too deeply"]


@pytest.mark.requirement("contract:violations:no-values")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "hunter2"),
        ({"enum": ["a"]}, "hunter2"),
        ({"const": "a"}, "hunter2"),
        ({"pattern": "^a"}, "hunter2"),
        ({"maxLength": 3}, "hunter2"),
        ({"not": {"type": "string"}}, "hunter2"),
        ({"anyOf": [{"type": "null"}, {"maxLength": 2}]}, "hunter2"),
        ({"oneOf": [{"type": "string"}, {"minLength": 2}]}, "hunter2"),
        ({"items": {"type": "null"}}, ["hunter2"]),
        ({"uniqueItems": True}, ["hunter2", "hunter2"]),
        ({"contains": {"type": "null"}}, ["hunter2"]),
        ({"properties": {"a": False}}, {"a": "hunter2"}),
        ({"additionalProperties": False}, {"a": "hunter2"}),
        ({"propertyNames": {"maxLength": 1}}, {"ab": "hunter2"}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": "hunter2"}),
        ({"maximum": 3}, 271828),
        ({"multipleOf": 5}, 271828),
    ],
    ids=lambda value: str(value)[:30],
)
def test_no_violation_repeats_a_value(schema: dict[str, Any], value: object) -> None:
    told = Validator(schema).violations(value)

    assert len(told) == 1
    assert "hunter2" not in told[0]
    assert "271828" not in told[0]


@pytest.mark.requirement("contract:violations:no-values")
def test_a_violation_names_place_and_rule() -> None:
    checked = operation_validator("session_patch.json")

    assert checked.violations({"session_id": "..", "body": {"colour": "secret"}, "end_reason": "case_closed"}) == [
        "/session_id: pattern: an id that the endpoint issued: 1 to 4,096 characters, no NUL, CR, LF or lone "
        "surrogate, not `.` or `..`",
        "/body: additionalProperties: unknown `colour`; known are `title`, `end_reason`",
        "/end_reason: not: has no effect beside `body`, of which alone the request is made; put it into `body`",
    ]
