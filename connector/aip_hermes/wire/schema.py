"""The JSON Schemas of the AIP objects, and the check of a raw envelope against them.

A server asks the schema before it decodes, so an unknown member anywhere is refused by name.

Source: wire model §1.3, §9, §9.4.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from aip_hermes.wire.contract_files import contract_folder

__all__ = ["envelope_violations", "load_schema", "schema_names", "schema_violations"]

_SUFFIX = ".schema.json"
_MAX_VIOLATIONS = 16
_MAX_PLACE = 128


@cache
def schema_names() -> tuple[str, ...]:
    """Return the names that `load_schema` knows, in alphabetical order."""
    folder = contract_folder() / "schemas" / "aip"
    return tuple(sorted(f.name.removesuffix(_SUFFIX) for f in folder.iterdir() if f.name.endswith(_SUFFIX)))


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema `schemas/aip/<name>.schema.json`.

    Raises: KeyError when there is none.
    """
    if name not in schema_names():
        raise KeyError(name)
    text = (contract_folder() / "schemas" / "aip" / (name + _SUFFIX)).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator(name: str) -> Draft202012Validator:
    registry: Registry[Any] = Registry().with_resources(
        (sibling + _SUFFIX, DRAFT202012.create_resource(load_schema(sibling))) for sibling in schema_names()
    )
    return Draft202012Validator({"$ref": name + _SUFFIX}, registry=registry)


def schema_violations(name: str, raw: object) -> list[str]:
    """Return at most 16 texts `/place: what is wrong`; they name members and rules, never a value.

    Raises: KeyError for an unknown schema.
    """
    load_schema(name)
    found = []
    for error in _validator(name).iter_errors(raw):
        place = "".join(f"/{part}" for part in error.absolute_path)[:_MAX_PLACE]
        found.append(f"{place or '/'}: {_text(error.validator, error.validator_value, error.instance)}")
        if len(found) == _MAX_VIOLATIONS:
            break
    return found


def envelope_violations(raw: object) -> list[str]:
    """Return what the envelope schema refuses about `raw`; empty when it holds."""
    return schema_violations("envelope", raw)


def _text(rule: str, wanted: Any, instance: Any) -> str:
    match rule:
        case "type":
            return f"is not of type {wanted}"
        case "required":
            missing = [name for name in wanted if name not in instance]
            return f"lacks {', '.join(missing)}"
        case "const" | "enum":
            return "is none of the allowed values"
        case _:
            return f"breaks the rule {rule}"
