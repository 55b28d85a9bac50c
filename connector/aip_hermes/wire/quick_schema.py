"""The question "does it hold?" for a JSON Schema (draft 2020-12), put together once as plain functions.

Nearly everything that arrives holds, and then nobody asks for more: this answers that a value holds, or that it can't
say so. Only then the full validator looks, and says what is wrong. A keyword that is not known here makes every answer
that depends on it the second one, never a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

__all__ = ["Holds", "quick"]

Holds = Callable[[Any], bool]


class _CannotSay(Exception):
    """A rule that is not known here, or a value that is not plain JSON."""


def quick(documents: Mapping[str, Any], start: str) -> Holds:
    """Return a function that is true only for values that hold under the schema at `start`.

    documents: name → schema; they refer to each other as `name#/json/pointer`, to themselves as `#/json/pointer`.
    start: such a reference. False says nothing: the value may break the schema, or a rule is not known here.
    """

    @cache
    def named(place: str) -> Holds:
        found: list[Holds] = []

        def later(value: Any) -> bool:
            # Put together when it is first asked: pieces may refer to themselves.
            if not found:
                file, _, pointer = place.partition("#")
                piece: Any = documents[file]
                for step in filter(None, pointer.split("/")):
                    piece = piece[step.replace("~1", "/").replace("~0", "~")]
                found.append(_schema(piece, lambda reference: named(_absolute(reference, file))))
            return found[0](value)

        return later

    holds = named(_absolute(start, ""))

    def safely(value: Any) -> bool:
        try:
            return holds(value)
        except (_CannotSay, RecursionError):
            return False

    return safely


def _absolute(reference: str, file: str) -> str:
    name, _, pointer = reference.partition("#")
    return f"{name or file}#{pointer}"


_Named = Callable[[str], Holds]


def _schema(schema: Any, named: _Named) -> Holds:
    if isinstance(schema, bool):
        return lambda _value: schema
    rules = [
        rule
        for keyword, given in schema.items()
        if keyword not in _SAYS_NOTHING and (rule := _rule(keyword, given, schema, named)) is not None
    ]
    if len(rules) == 1:
        return rules[0]

    return lambda value: all(rule(value) for rule in rules)


_SAYS_NOTHING: Final = frozenset(("$comment", "$defs", "$schema", "default", "description", "examples", "title"))


def _rule(keyword: str, given: Any, schema: Mapping[str, Any], named: _Named) -> Holds | None:
    """Return the function of one keyword; None where another keyword covers it."""
    if keyword in _PLAIN:
        return _PLAIN[keyword](given)
    inner = [_schema(entry, named) for entry in given] if keyword in ("allOf", "anyOf", "oneOf") else []
    match keyword:
        case "$ref":
            return named(given)
        case "properties":
            return _members(given, schema.get("additionalProperties", True), named) if _closed(schema) else _unknown
        case "additionalProperties":
            return None if "properties" in schema else _members({}, given, named) if _closed(schema) else _unknown
        case "items":
            entry = _schema(given, named) if "prefixItems" not in schema else _unknown
            return lambda value: not isinstance(value, list) or all(map(entry, value))
        case "allOf":
            return lambda value: all(one(value) for one in inner)
        case "anyOf":
            return lambda value: any(one(value) for one in inner)
        case "oneOf":
            return lambda value: sum(one(value) for one in inner) == 1
        case "not":
            refused = _schema(given, named)
            return lambda value: not refused(value)
        case "if":
            asked, then, other = (_schema(schema.get(name, True), named) for name in ("if", "then", "else"))
            return lambda value: then(value) if asked(value) else other(value)
        case "then" | "else":
            return None if "if" in schema else _anything
        case "dependentSchemas":
            pieces = {name: _schema(piece, named) for name, piece in given.items()}
            return lambda value: (
                not isinstance(value, dict) or all(piece(value) for name, piece in pieces.items() if name in value)
            )
    return _unknown


def _closed(schema: Mapping[str, Any]) -> bool:
    return "patternProperties" not in schema


def _unknown(_value: Any) -> bool:
    raise _CannotSay


def _anything(_value: Any) -> bool:
    return True


def _members(properties: Mapping[str, Any], others: Any, named: _Named) -> Holds:
    known = {name: _schema(piece, named) for name, piece in properties.items()}
    other = _schema(others, named)

    def hold(value: Any) -> bool:
        return not isinstance(value, dict) or all(known.get(name, other)(member) for name, member in value.items())

    return hold


def _is_integer(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, Holds]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _type(given: str | Sequence[str]) -> Holds:
    if isinstance(given, str):
        return _TYPES[given]
    kinds = [_TYPES[name] for name in given]
    return lambda value: any(kind(value) for kind in kinds)


def _enum(given: Sequence[Any]) -> Holds:
    """Compare as JSON does: true is not 1. Numbers and what holds others are left to the full validator."""
    if not all(entry is None or isinstance(entry, str | bool) for entry in given):
        return _unknown
    texts = frozenset(entry for entry in given if isinstance(entry, str))
    others = [entry for entry in given if not isinstance(entry, str)]
    return lambda value: value in texts if isinstance(value, str) else any(value is entry for entry in others)


def _required(given: Sequence[str]) -> Holds:
    names = frozenset(given)
    return lambda value: not isinstance(value, dict) or names <= value.keys()


def _unique(given: bool) -> Holds:
    def hold(value: Any) -> bool:
        if not given or not isinstance(value, list) or len(value) < 2:
            return True
        if not all(isinstance(entry, str) for entry in value):
            raise _CannotSay
        return len(set(value)) == len(value)

    return hold


def _pattern(given: str) -> Holds:
    search = re.compile(given).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _sized(kind: type[str | list[Any] | dict[str, Any]], holds: Callable[[int, int], bool]) -> Callable[[int], Holds]:
    return lambda given: lambda value: not isinstance(value, kind) or holds(len(value), given)


def _bounded(holds: Callable[[float, float], bool]) -> Callable[[float], Holds]:
    return lambda given: lambda value: not _is_number(value) or holds(value, given)


_PLAIN: Final[Mapping[str, Callable[[Any], Holds]]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda given: _enum([given]),
    "required": _required,
    "pattern": _pattern,
    "uniqueItems": _unique,
    "minLength": _sized(str, lambda size, given: size >= given),
    "maxLength": _sized(str, lambda size, given: size <= given),
    "minItems": _sized(list, lambda size, given: size >= given),
    "maxItems": _sized(list, lambda size, given: size <= given),
    "minProperties": _sized(dict, lambda size, given: size >= given),
    "maxProperties": _sized(dict, lambda size, given: size <= given),
    "minimum": _bounded(lambda value, given: value >= given),
    "maximum": _bounded(lambda value, given: value <= given),
    "exclusiveMinimum": _bounded(lambda value, given: value > given),
    "exclusiveMaximum": _bounded(lambda value, given: value < given),
}
