"""The page of settings, held against the tables: every table and key is there, with its type, default and limits."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aip_hermes.database.pool_settings import ConnectSettings, PoolSettings
from aip_hermes.hermes.operator.policy import BOUNDS, DEFAULT_INSTRUCTIONS, OperatorPolicy
from aip_hermes.settings.tables import ConnectTable, FileTable, OperatorTable, PostgresTable

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")

ELSEWHERE: Mapping[type[BaseModel], object] = {
    OperatorTable: OperatorPolicy(),
    PostgresTable: PoolSettings(),
    ConnectTable: ConnectSettings(),
}
"""Tables whose defaults belong to what they become."""
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", datetime: "time"}
Row = tuple[str, str, str]
"""Type, default, limits."""


def type_of(annotation: Any) -> str:
    """Return an annotation in the words of the page."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return "time" if datetime in parts else type_of(parts[0])
    if hasattr(annotation, "__metadata__"):
        return type_of(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(annotation))
    if get_origin(annotation) is list:
        return f"list of {type_of(get_args(annotation)[0])}s"
    return WORDS[annotation]


def bounds_of(field: FieldInfo) -> str:
    """Return the limits that the table itself checks."""
    metadata = [*field.metadata]
    for part in get_args(field.annotation):
        metadata += getattr(part, "__metadata__", ())
    found = [each for rule in metadata for each in (getattr(rule, "metadata", None) or [rule])]
    least = next((f"{each.ge:g}" for each in found if isinstance(each, annotated_types.Ge)), None)
    least = least or next((f"more than {each.gt:g}" for each in found if isinstance(each, annotated_types.Gt)), None)
    most = next((each.le for each in found if isinstance(each, annotated_types.Le)), None)
    return "" if least is None else f"{_plain(least)} to {most}"


def _plain(number: str) -> str:
    return number.replace("1e+06", "1000000")


def default_of(table: type[BaseModel], name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = getattr(ELSEWHERE[table], name, False) if table in ELSEWHERE else field.default
    if value == DEFAULT_INSTRUCTIONS:
        return "the built-in text"
    return "none" if value is None else f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table that a field holds, or a list of which it holds."""
    parts = (field.annotation, *get_args(field.annotation))
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def tables(inside: type[BaseModel] = FileTable, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield each table that has keys, with its header as it is written."""
    for name, field in inside.model_fields.items():
        if (table := table_of(field)) is None:
            continue
        listed = any(get_origin(part) is list for part in (field.annotation, *get_args(field.annotation)))
        if any(table_of(each) is None for each in table.model_fields.values()):
            yield f"[[{path}{name}]]" if listed else f"[{path}{name}]", table
        yield from tables(table, f"{path}{name}.")


def written() -> dict[str, dict[str, Row]]:
    """Return what the page says of each key."""
    found: dict[str, dict[str, Row]] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        header = section.splitlines()[0].strip("` ")
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.*?) ?\| (.+) \|$", section, flags=re.MULTILINE)
        found[header] = {name: (kind, default, limits.strip()) for name, kind, default, limits, _ in rows}
        assert all(sentence.strip().endswith(".") for *_, sentence in rows), header
    return found


@pytest.mark.requirement("settings:reference")
def test_the_page_has_every_table_and_key_as_the_program_reads_them() -> None:
    expected: dict[str, dict[str, Row]] = {}
    for header, table in tables():
        expected[header] = {
            name: (
                type_of(field.annotation),
                default_of(table, name, field),
                "{} to {}".format(*BOUNDS[name]) if table is OperatorTable and name in BOUNDS else bounds_of(field),
            )
            for name, field in table.model_fields.items()
            if table_of(field) is None
        }
    assert list(written()) == list(expected)
    for header, rows in expected.items():
        assert written()[header] == rows, header
