"""The JSON Schemas of the AIP objects, and the check of a raw envelope against them.

A server asks the schema before it decodes, so an unknown member anywhere is refused by name. A schema is called by the
name of its file, `action_result`; a part of a file by its fragment, `capability_contract#/$defs/sla`.

Source: wire model §1.3, §9, §9.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from aip_hermes.wire.contract_files import contract_folder
from aip_hermes.wire.quick_schema import Holds, quick

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

__all__ = ["envelope_violations", "load_schema", "schema_names", "schema_violations"]

_SUFFIX = ".schema.json"
_MAX_VIOLATIONS = 16
_MAX_PLACE = 128
_MAX_NAME = 64


@cache
def schema_names() -> tuple[str, ...]:
    """Return the names that `load_schema` knows, in alphabetical order."""
    folder = contract_folder() / "schemas" / "aip"
    return tuple(sorted(f.name.removesuffix(_SUFFIX) for f in folder.iterdir() if f.name.endswith(_SUFFIX)))


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema `schemas/aip/<name>.schema.json`; callers don't change it.

    Raises: KeyError when there is none.
    """
    if name not in schema_names():
        raise KeyError(name)
    text = (contract_folder() / "schemas" / "aip" / (name + _SUFFIX)).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator(name: str) -> Draft202012Validator:
    # A client asks no schema, and these three take a third of its start.
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    file, _, fragment = name.partition("#")
    load_schema(file)
    registry: Registry[Any] = Registry().with_resources(
        (sibling + _SUFFIX, DRAFT202012.create_resource(load_schema(sibling))) for sibling in schema_names()
    )
    return Draft202012Validator({"$ref": f"{file}{_SUFFIX}#{fragment}"}, registry=registry)


@cache
def _quick(name: str) -> Holds:
    file, _, fragment = name.partition("#")
    load_schema(file)
    return quick({one + _SUFFIX: load_schema(one) for one in schema_names()}, f"{file}{_SUFFIX}#{fragment}")


def schema_violations(name: str, raw: object) -> list[str]:
    """Return at most 16 texts `/place: what is wrong`; they name members and rules, never a value.

    Raises: KeyError for an unknown schema.
    """
    if _quick(name)(raw):
        return []
    found: list[str] = []
    for error in _validator(name).iter_errors(raw):
        for leaf in _leaves(error):
            place = "".join(f"/{part}" for part in leaf.absolute_path)[:_MAX_PLACE]
            text = f"{place or '/'}: {_text(leaf)}"
            if text not in found:
                found.append(text)
            if len(found) == _MAX_VIOLATIONS:
                return found
    return found


def envelope_violations(raw: object) -> list[str]:
    """Return what the envelope schema refuses about `raw`; empty when it holds."""
    return schema_violations("envelope", raw)


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Descend into the one variant that was meant: not null, or the one whose tag fits."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [branch for branch in branches.values() if not any(_rules_out(inner) for inner in branch)]
    if len(meant) != 1:
        yield error
        return
    for inner in meant[0]:
        yield from _leaves(inner)


def _rules_out(error: ValidationError) -> bool:
    """A null variant, or a variant with another tag."""
    if error.validator == "type":
        return error.validator_value == "null" and len(error.relative_path) == 0
    return error.validator in ("const", "enum") and list(error.relative_path) in (["type"], ["operator"])


def _text(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "type":
            return f"is not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}"
        case "required":
            return f"lacks {', '.join(name for name in wanted if name not in instance)}"
        case "additionalProperties":
            known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
            unknown = [str(name)[:_MAX_NAME] for name in instance if name not in known]
            return f"has the unknown member {', '.join(unknown[:3])}"
        case "const" | "enum":
            return "is none of the allowed values"
        case "anyOf" | "oneOf":
            return "is none of the variants"
        case "minProperties" | "maxProperties":
            return "does not have exactly one member"
        case "minimum" | "maximum":
            return "is out of range"
        case rule:
            return f"breaks the rule {rule}"
