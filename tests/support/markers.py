"""Markers: one text per field that a caller, a provider or an operator fills, and where they turn up afterwards."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

__all__ = ["CREDENTIALS", "MARKERS", "found_in", "found_in_tables", "mark"]

CREDENTIALS: Final = frozenset(("requester", "reviewer", "endpoint", "webhook", "stranger", "quoted"))
"""Tokens, the endpoint's key, the webhook's secret, a token that nobody has, and one in a provider's complaint."""

_FIELDS: Final = (
    *sorted(CREDENTIALS),
    # memory scope
    "sessionkey",
    # text: what is said, asked for, thought and done
    "message", "system", "prompt", "reply", "reasoning", "toolargs", "toolresult", "objective", "context", "jobprompt",
    "runtext",
    # names and labels
    "title", "patched", "model", "jobname", "key", "trace", "reason", "veto", "withdrawn",
    # what nobody asked for
    "member", "operation", "header", "query", "path", "body", "complaint", "page",
)  # fmt: skip

MARKERS: Final[Mapping[str, str]] = {field: f"zq7-{field}-planted-7zq" for field in _FIELDS}
"""Field to marker. No marker is part of another."""


def mark(field: str) -> str:
    """Return the marker of `field`."""
    return MARKERS[field]


def found_in(text: str | bytes) -> set[str]:
    """Return the fields whose marker stands in `text`, in whatever case."""
    plain = text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text
    plain = plain.lower()
    return {field for field, marker in MARKERS.items() if marker in plain}


def found_in_tables(store: Path) -> dict[str, set[str]]:
    """Return which fields' markers stand in which `table.column` of a store; columns without any are left out."""
    found: dict[str, set[str]] = {}
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - names come from the store itself
            columns = [column[0] for column in cursor.description]
            for row in cursor:
                for column, value in zip(columns, row, strict=True):
                    if fields := _found_in_value(value):
                        found.setdefault(f"{table}.{column}", set()).update(fields)
    return found


def _found_in_value(value: Any) -> Iterable[str]:
    return found_in(value if isinstance(value, str | bytes) else json.dumps(value))
