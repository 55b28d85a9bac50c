"""The runtime's store: schema and named queries.

A state change and its event are always one transaction, so callers compose queries inside one function per transition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.database import Queries, Query, StoreKind

__all__ = ["APPLICATION_ID", "KIND", "MIGRATIONS", "QUERIES", "from_json", "to_json"]

APPLICATION_ID: Final = 0x41495052
"""`AIPR` in the file's header."""

MIGRATIONS: Final = "aip_hermes.runtime.store.migrations"

KIND: Final = StoreKind(migrations=MIGRATIONS, application_id=APPLICATION_ID, schema="aip_runtime")

QUERIES: Final[Mapping[str, Query]] = Queries.load(
    package="aip_hermes.runtime.store",
    names=(
        "actions.sql",
        "approvals.sql",
        "chunks.sql",
        "decisions.sql",
        "events.sql",
        "figures.sql",
        "locks.sql",
        "queue.sql",
        "reconciliation.sql",
        "records.sql",
        "retention.sql",
        "state.sql",
    ),
)


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def to_json(value: object) -> str:
    """Return JSON text that any store can hold, lone surrogates included."""
    return _ENCODER.encode(value)


def from_json(text: str | None) -> Any:
    """Return the value of a JSON column; None for NULL."""
    return None if text is None else json.loads(text)
