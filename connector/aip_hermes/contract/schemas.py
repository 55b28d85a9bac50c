"""The schemas of inputs and outputs, made self-contained.

A file in schemas/operations/ may refer to a shared piece by `definitions.json#/$defs/<name>`. What is published refers
to nothing outside itself: the shared pieces it needs come along under its own `$defs`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from aip_hermes.contract.rows import ContractFileError
from aip_hermes.contract.validation import Validator
from aip_hermes.wire import contract_folder

__all__ = ["operation_schema", "operation_validator", "self_contained"]

_SHARED = "definitions.json"
_INSIDE = "#/$defs/"
_UNPUBLISHED = ("$schema", "$comment")


@cache
def operation_schema(name: str) -> dict[str, Any]:
    """Return the published schema of the file `name` in schemas/operations/.

    The same object for every caller and endpoint: not to be changed.
    Raises: ContractFileError (no such file, no JSON, a reference that leads elsewhere).
    """
    return self_contained(_read(name), shared=_read(_SHARED), name=name)


@cache
def operation_validator(name: str) -> Validator:
    """Return the validator of the file `name`, compiled once per process."""
    return Validator(operation_schema(name))


def self_contained(schema: dict[str, Any], *, shared: dict[str, Any], name: str) -> dict[str, Any]:
    """Return `schema` with the shared pieces that it refers to, directly or through another piece, under `$defs`."""
    pieces: dict[str, Any] = {}

    def settled(node: Any) -> Any:
        if isinstance(node, list):
            return [settled(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        return {key: reference(value) if key == "$ref" else settled(value) for key, value in node.items()}

    def reference(target: str) -> str:
        file, _, piece = target.partition(_INSIDE)
        if file not in ("", _SHARED) or piece not in shared["$defs"]:
            raise ContractFileError(f"schemas/operations/{name}: `{target}` is no shared piece")
        if piece not in pieces:
            pieces[piece] = None
            pieces[piece] = settled(shared["$defs"][piece])
        return _INSIDE + piece

    whole: dict[str, Any] = settled({key: value for key, value in schema.items() if key not in _UNPUBLISHED})
    return {**whole, "$defs": dict(sorted(pieces.items()))} if pieces else whole


@cache
def _read(name: str) -> dict[str, Any]:
    file = contract_folder().joinpath("schemas", "operations", name)
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ContractFileError(f"schemas/operations/{name} is missing") from None
    except ValueError as error:
        raise ContractFileError(f"schemas/operations/{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ContractFileError(f"schemas/operations/{name} is no JSON object")
    return found
