"""Files that other programs wrote beside a session, which go with it: its transcript and its request dumps."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import structlog

__all__ = ["remove_files"]

log = structlog.get_logger(__name__)

_TRANSCRIPTS: Final = (".json", ".jsonl")
_DUMP: Final = "request_dump_"


def remove_files(folder: Path, session_ids: Collection[str]) -> int:
    """Remove `<id>.json`, `<id>.jsonl` and `request_dump_<id>_*.json` of these ids; returns how many files went.

    Only names that stand in `folder` itself are compared, so that no id leads out of it. What can't be removed is
    logged and stays: the rows are gone already.
    """
    ids = frozenset(session_ids)
    removed = failed = 0
    try:
        found = [path for path in folder.iterdir() if _belongs(path.name, ids)] if ids else []
    except OSError as error:
        log.warning("session_db.files_kept", error_type=type(error).__name__)
        return 0
    for path in found:
        try:
            path.unlink()
            removed += 1
        except OSError:
            failed += 1
    if failed:
        log.warning("session_db.files_kept", files=failed)
    return removed


def _belongs(name: str, ids: Collection[str]) -> bool:
    if any(name.endswith(end) and name.removesuffix(end) in ids for end in _TRANSCRIPTS):
        return True
    if not (name.startswith(_DUMP) and name.endswith(".json")):
        return False
    rest = name.removeprefix(_DUMP)
    return any(rest[:place] in ids for place, letter in enumerate(rest) if letter == "_")
