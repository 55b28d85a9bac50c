"""A copy of a store while its server writes: one snapshot, checked before it gets its name."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aip_hermes.database.drafts import draft_beside, publish
from aip_hermes.database.failures import StoreFailure, StoreUnavailable, translated
from aip_hermes.database.owner import LOCK_NAME
from aip_hermes.database.untouched import ENGINE_FILES, beside, open_untouched

__all__ = [
    "Copied",
    "CopyRefused",
    "Progress",
    "back_up",
    "copy_into",
    "drop_draft",
]

Progress = Callable[[int, int], None]
"""Told (pages done, pages in all) as a copy goes on."""

_PAGES = 512


class CopyRefused(StoreFailure):
    """A place that a copy can't go to, or a copy that can't be used. The text names the file and the next step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """A copy that was checked. path: where it is. size: in bytes. schema_version: of the store in it."""

    path: Path
    size: int
    schema_version: int


def back_up(
    path: Path,
    target: Path,
    *,
    migrations: str,
    application_id: int,
    force: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Copy the store `path` to `target` as of one moment, and check the copy; the store itself is not changed.

    The target appears whole or not at all, for its owner alone (0600), as a single file without a log. force: replace
    a target that exists. The folder must exist.
    Raises: CopyRefused, StoreUnavailable (also: disk full), StoreRefused, OSError.
    """
    _check_target(path, target, force=force)
    with open_untouched(path, migrations=migrations, application_id=application_id) as store:
        draft = draft_beside(target)
        try:
            problems = copy_into(draft, store.raw, progress)
            if problems:
                raise StoreUnavailable(
                    f"the copy of {path} is damaged ({problems[0]}), so the store is; `aip-hermes doctor` says more",
                    kind="corrupt",
                )
            try:
                publish(draft, target, force=force)
            except FileExistsError:
                raise _exists(target) from None
        finally:
            drop_draft(draft)
        return Copied(path=target, size=target.stat().st_size, schema_version=store.schema_version)


def drop_draft(draft: Path) -> None:
    """Remove a draft, if it still has that name, and what the engine left beside it."""
    for file in (draft, *(beside(draft, suffix) for suffix in ENGINE_FILES)):
        file.unlink(missing_ok=True)


def _check_target(path: Path, target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise CopyRefused(f"{target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise CopyRefused(f"{target.parent} is no folder; make it first")
    if any(_same(target, own) for own in _own_files(path)):
        raise CopyRefused(f"{target} is the store itself; name another file")
    if target.exists() and not target.is_file():
        raise CopyRefused(f"{target} is no regular file; name one")
    if os.path.lexists(target) and not force:
        raise _exists(target)


def _exists(target: Path) -> CopyRefused:
    return CopyRefused(f"{target} exists and is not overwritten; name another file, or add --force")


def _own_files(path: Path) -> Iterator[Path]:
    """Yield the names that belong to a store, whether there is such a file or not: a copy under one would end it."""
    for store in (path, path.resolve()):
        yield store
        yield from (beside(store, suffix) for suffix in ENGINE_FILES)
        yield store.with_name(LOCK_NAME)


def _same(one: Path, other: Path) -> bool:
    if one.name == other.name and one.parent.samefile(other.parent):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def copy_into(draft: Path, source: sqlite3.Connection, progress: Progress | None) -> list[str]:
    """Copy one snapshot of `source` into `draft`; return what is wrong with the copy. Raises: StoreFailure."""
    told = None if progress is None else lambda _status, left, total: progress(total - left, total)
    target = sqlite3.connect(draft, isolation_level=None)
    try:
        # An open read holds the snapshot: without it, each commit of the server would start the copy from the top.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(target, pages=_PAGES, progress=told)
        # The copied head says that there is a log; a single file has none.
        target.execute("PRAGMA journal_mode = DELETE").fetchone()
        found = [str(row[0]) for row in target.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found
    except sqlite3.Error as error:
        raise translated(error) from error
    finally:
        target.close()
        with suppress(sqlite3.Error):
            source.execute("ROLLBACK")
