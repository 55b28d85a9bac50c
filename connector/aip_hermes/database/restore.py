"""Put a backup in the place of a store; what was there is kept beside it.

A kill at any point leaves the old store or the new one under the store's name, and the old one always somewhere: the
new file is written under another name, the old log is folded into the old file first, so that no log is left that the
engine would play into the new one, and then one rename decides.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from aip_hermes.database.backup import CopyRefused, Progress, copy_into, drop_draft
from aip_hermes.database.drafts import draft_beside, sync_file, sync_folder
from aip_hermes.database.failures import StoreUnavailable, translated
from aip_hermes.database.owner import OwnerLock
from aip_hermes.database.untouched import ENGINE_FILES, beside, check_ours, connect_untouched, filled, open_untouched

__all__ = ["Restored", "restore"]

_BUSY_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """path: the store. kept: the store that was there before; None where there was none. size: in bytes."""

    path: Path
    kept: Path | None
    size: int


def restore(
    path: Path, backup: Path, *, migrations: str, application_id: int, now_ms: int, progress: Progress | None = None
) -> Restored:
    """Replace the store `path` by `backup`, a file that `back_up` wrote. No server may run there.

    now_ms: Unix time, names the file in which the old store is kept.
    Raises: AlreadyOwned, CopyRefused, StoreRefused for a foreign or newer backup, or where the store's name belongs to
    another program; StoreUnavailable for a damaged backup; OSError. Then nothing has changed.
    """
    if path.exists() and backup.exists() and backup.samefile(path):
        raise CopyRefused(f"{backup} is the store itself; name a backup")
    if not backup.exists():
        raise StoreUnavailable(f"{backup} does not exist; name a file that `backup` wrote", kind="missing")
    if any(filled(beside(backup, suffix)) for suffix in ("-wal", "-journal")):
        raise CopyRefused(f"{backup} has a log beside it, so it is a store and no backup; make one with `backup`")
    with OwnerLock(path.parent), open_untouched(backup, migrations=migrations, application_id=application_id) as source:
        there = path.exists() and path.stat().st_size > 0
        if there:
            check_ours(path, application_id=application_id)
        elif filled(beside(path, "-wal")):
            raise CopyRefused(f"{beside(path, '-wal')} is a log without its store; move it away first")
        draft = draft_beside(path)
        try:
            problems = copy_into(draft, source.raw, progress)
            if problems:
                message = f"{backup} is damaged ({problems[0]}); the store was not touched"
                raise StoreUnavailable(message, kind="corrupt")
            sync_file(draft)
            kept = path.with_name(f"{path.name}.before-restore-{now_ms}") if there else None
            _swap(path, draft, kept)
        finally:
            drop_draft(draft)
    return Restored(path=path, kept=kept, size=path.stat().st_size)


def _swap(path: Path, draft: Path, kept: Path | None) -> None:
    """Let `draft` take the store's name; the old store gets the name `kept`."""
    if kept is None:
        draft.replace(path)
        sync_folder(path.parent)
        return
    if _readable(path):
        with closing(sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)) as old:
            _fold(old, path)
            # Held until the names have changed: who opens the old file meanwhile finds that it was moved.
            old.execute("BEGIN EXCLUSIVE")
            os.link(path, kept)
            draft.replace(path)
            sync_folder(path.parent)
            return
    # Its log can't be folded in. All of it is copied before a byte of it goes.
    for suffix in ("", *ENGINE_FILES):
        if beside(path, suffix).exists():
            shutil.copy2(beside(path, suffix), beside(kept, suffix))
            sync_file(beside(kept, suffix))
    sync_folder(path.parent)
    for suffix in ENGINE_FILES:
        beside(path, suffix).unlink(missing_ok=True)
    draft.replace(path)
    sync_folder(path.parent)


def _readable(path: Path) -> bool:
    """Whether the engine makes sense of the old file and its log; a look that changes neither."""
    try:
        with closing(connect_untouched(path, served=False)) as old:
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, StoreUnavailable):
        return False
    return True


def _fold(old: sqlite3.Connection, path: Path) -> None:
    """Play the old log into the old file, and leave it without one."""
    try:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        mode = old.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    except sqlite3.Error as error:
        raise translated(error) from error
    if mode != "delete":
        raise StoreUnavailable(f"{path} is open in another command; let that end first", kind="locked")
