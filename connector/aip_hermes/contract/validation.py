"""Checks a value against a schema and says what is wrong without repeating it.

A violation is one line: the JSON pointer of the place (`(root)` for the value itself), the keyword that failed, and the
rule. Where the schema describes the place, the description is the rule. Values never appear, since they may be secret;
names of members do, cut to 64 characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from aip_hermes.wire.quick_schema import quick

__all__ = ["MAX_VIOLATIONS", "Validator"]

MAX_VIOLATIONS = 16
_MAX_NAME = 64
_MAX_PLACE = 256
_MAX_RULE = 320
_MAX_NAMES = 8
_MAX_LOOKED_AT = 256

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (str, "a string"),
    (int, "an integer"),
    (float, "a number"),
    (dict, "an object"),
    (list, "an array"),
    (type(None), "null"),
)
_BOUNDS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} entries",
    "maxItems": "must have at most {} entries",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
}


class Validator:
    """A compiled schema (draft 2020-12). Safe to share between threads.

    Raises jsonschema's SchemaError when the schema itself is wrong, ValueError when it refers outside itself.
    """

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        Draft202012Validator.check_schema(schema)
        for target in _references(schema):
            if not target.startswith("#"):
                raise ValueError("a published schema refers to nothing outside itself")
        self._compiled = Draft202012Validator(_inlined(schema))
        self._holds = quick({"": schema}, "#")

    def violations(self, value: object) -> list[str]:
        """Return what is wrong with `value`, at most 16 distinct lines of bounded length; nothing when it is fine."""
        if self._holds(value):
            return []
        found: dict[str, None] = {}
        try:
            for error in islice(self._compiled.iter_errors(value), _MAX_LOOKED_AT):
                found[_line(error)] = None
                if len(found) == MAX_VIOLATIONS:
                    break
        except RecursionError:
            return ["(root): nested too deeply"]
        return list(found)


def _line(error: ValidationError) -> str:
    return f"{_place(error)}: {error.validator}: {_cut(_rule(error), _MAX_RULE)}"


def _place(error: ValidationError) -> str:
    parts = [_name(str(part)).replace("~", "~0").replace("/", "~1") for part in error.absolute_path]
    return _cut("".join(f"/{part}" for part in parts), _MAX_PLACE) or "(root)"


def _rule(error: ValidationError) -> str:
    keyword = str(error.validator)
    value: Any = error.validator_value
    instance: Any = error.instance
    if keyword == "required":
        return "missing " + _names(name for name in value if name not in instance)
    if keyword == "additionalProperties" and value is False:
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        return f"unknown {_names(name for name in instance if name not in known)}; known are {_names(known)}"
    if keyword == "type":
        kinds = [value] if isinstance(value, str) else value
        return f"must be {' or '.join(kinds)}, not {_kind(instance)}"
    if keyword in _BOUNDS:
        return _BOUNDS[keyword].format(value)
    if keyword == "enum":
        return "must be one of " + _names(str(entry) for entry in value)
    for schema in (value, error.schema) if keyword == "not" else (error.schema,):
        description = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(description, str):
            return description
    return "does not hold"


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "something else")


def _names(names: Any) -> str:
    listed = [f"`{_name(str(name))}`" for name in islice(names, _MAX_NAMES + 1)]
    if len(listed) > _MAX_NAMES:
        listed[-1] = "…"
    return ", ".join(listed) or "none"


def _name(text: str) -> str:
    """Spell a member's name on one line: controls and lone surrogates escaped, at most 64 characters."""
    shown = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text[: _MAX_NAME + 1])
    return _cut(shown, _MAX_NAME)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _inlined(schema: Any) -> Any:
    """Replace each reference to a plain piece of `$defs` by the piece: following it costs more than checking it."""
    pieces = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    plain = {f"#/$defs/{name}": piece for name, piece in pieces.items() if not any(_references(piece))}

    def settled(node: Any) -> Any:
        if isinstance(node, list):
            return [settled(entry) for entry in node]
        if not isinstance(node, Mapping):
            return node
        if list(node) == ["$ref"] and node["$ref"] in plain:
            return plain[node["$ref"]]
        return {key: settled(value) for key, value in node.items()}

    return settled(schema)


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            elif key not in ("enum", "const", "examples", "default"):
                yield from _references(value)
    elif isinstance(schema, list):
        for entry in schema:
            yield from _references(entry)
