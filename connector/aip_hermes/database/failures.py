"""What a store can answer instead of data.

StoreFailure
├── StoreUnavailable   try later: locked, disk full, I/O, damaged; `kind` says which
│   └── StoreClosed    the object was closed
├── StoreConflict      a constraint refused the row; nothing of this operation was kept
└── StoreRefused       a foreign, newer or altered file; it was not touched
"""

from __future__ import annotations

import sqlite3
from typing import Literal

__all__ = ["FailureOfStore", "StoreClosed", "StoreConflict", "StoreFailure", "StoreRefused", "StoreUnavailable"]

FailureOfStore = Literal["locked", "disk_full", "io", "corrupt", "missing", "closed", "other"]

_KINDS: tuple[tuple[str, FailureOfStore], ...] = (
    ("locked", "locked"),
    ("busy", "locked"),
    ("disk is full", "disk_full"),
    ("malformed", "corrupt"),
    ("not a database", "corrupt"),
    ("unable to open", "missing"),
    ("i/o error", "io"),
)


class StoreFailure(Exception):
    """Root of the tree. harmless: set by who knows that nothing was done outside of the store before."""

    harmless: bool = False


class StoreUnavailable(StoreFailure):
    """The store can't do this now. Nothing of the operation was kept."""

    def __init__(self, message: str, *, kind: FailureOfStore = "other") -> None:
        super().__init__(message)
        self.kind: FailureOfStore = kind


class StoreClosed(StoreUnavailable):
    """The store was closed."""

    def __init__(self, message: str = "the store is closed") -> None:
        super().__init__(message, kind="closed")


class StoreConflict(StoreFailure):
    """A constraint refused the row."""


class StoreRefused(StoreFailure):
    """The file isn't ours, is newer than this program, or its migrations were altered."""


def translated(error: sqlite3.Error) -> StoreFailure:
    """Return what `error` of the engine means here."""
    if isinstance(error, sqlite3.IntegrityError):
        return StoreConflict(str(error))
    text = str(error)
    lowered = text.lower()
    kind: FailureOfStore = next((kind for part, kind in _KINDS if part in lowered), "other")
    return StoreUnavailable(f"the store is not available: {text}", kind=kind)
