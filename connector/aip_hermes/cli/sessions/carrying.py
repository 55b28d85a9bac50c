"""`aip-hermes sessions export` and `import`: sessions as lines of a file."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from aip_hermes.cli.aipctl.terminal import say
from aip_hermes.cli.ending import cancelled_by_signals, stoppable
from aip_hermes.cli.ready import announce
from aip_hermes.cli.sessions.documents import Line, in_order, line_of, lines_of, session_at
from aip_hermes.cli.sessions.place import reading, store_in, writing
from aip_hermes.cli.sessions.progress import counting
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.cli.sessions.showing import resolved
from aip_hermes.database import Connection
from aip_hermes.database.drafts import draft_beside, publish
from aip_hermes.embedded.folder import LOCK_NAME
from aip_hermes.embedded.session_db import lineage, portability
from aip_hermes.embedded.session_db.import_check import ImportLimits

__all__ = ["run_export", "run_import"]

_STDOUT: Final = Path("-")
_BATCH_BYTES: Final = 4 * 1024 * 1024
_BATCH_SESSIONS: Final = 500
_ANY: Final = 2**62
_NO_LIMITS: Final = ImportLimits(
    sessions=_ANY, messages_per_session=_ANY, messages=_ANY, session_bytes=_ANY, bytes=_ANY
)
"""A file that its owner imports may hold any number: it is read line by line and stored some megabytes at a time."""


def run_export(
    *, folder: Path, ids: Sequence[str], source: str | None, chains: bool, target: Path, force: bool
) -> None:
    """Write sessions, all where no id is given, to `target` as one view of the store; print one JSON line about it.

    chains: also the rows that compressions cut off. The file appears whole or not at all, for its owner alone.
    Raises: SessionsRefused, StoreFailure, OSError.
    """
    path = store_in(folder)
    with stoppable(), reading(path) as connection:
        wanted = _wanted(connection, ids, source=source, chains=chains)
        if target == _STDOUT:
            _write(connection, wanted, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            say(f"sessions exported: {len(wanted)}")
            return
        _check_target(target, path, force=force)
        with _whole(target, force=force) as file:
            messages = _write(connection, wanted, file)
    announce({"exported": len(wanted), "messages": messages, "bytes": target.stat().st_size, "file": str(target)})


def run_import(*, folder: Path, file: Path) -> None:
    """Insert the sessions of a file, parents first, some megabytes per transaction; print one JSON line about it.

    The whole file is checked before anything is written. Ids that are there are skipped, so that an import that was
    stopped can be run again. Raises: SessionsRefused, StoreFailure, OSError.
    """
    path = store_in(folder)
    with stoppable():
        lines = in_order(list(lines_of(file)))
        told = asyncio.run(cancelled_by_signals(_imported(path, file, lines)))
    announce({**told, "file": str(file)})
    if told["untitled"]:
        say(f"titles left out because other sessions here have them: {told['untitled']}")
    if told["detached"]:
        say(f"parents left out because they are neither here nor in the file, or close a circle: {told['detached']}")


async def _imported(path: Path, file: Path, lines: Sequence[Line]) -> dict[str, Any]:
    total: dict[str, Any] = {"imported": 0, "skipped": 0, "detached": 0, "untitled": 0, "untitled_ids": []}
    async with writing(path) as db:
        with counting("importing", len(lines)) as progress:
            done = 0
            for batch in _batches(lines):
                told = await db.import_sessions([session_at(file, line) for line in batch], limits=_NO_LIMITS)
                if not told["ok"]:
                    wrong = told["errors"][0]
                    raise SessionsRefused(f"{file}, line {batch[wrong['index']].number}: {wrong['error']}")
                for name in total:
                    total[name] += told[name]
                done += len(batch)
                progress(done)
    return total


def _wanted(connection: Connection, ids: Sequence[str], *, source: str | None, chains: bool) -> list[str]:
    if not ids:
        return portability.exportable(connection, source=source)
    found = [resolved(connection, one) for one in ids]
    if chains:
        found = [segment for one in found for segment in lineage.compression_lineage(connection, one)]
    return list(dict.fromkeys(found))


def _write(connection: Connection, ids: Sequence[str], file: BinaryIO) -> int:
    messages = 0
    with counting("exporting", len(ids)) as progress:
        for done, session_id in enumerate(ids, start=1):
            document = portability.export(connection, session_id, limit=0)
            if document is not None:
                messages += len(document["messages"])
                file.write(line_of(document))
            progress(done)
    return messages


def _check_target(target: Path, store: Path, *, force: bool) -> None:
    if not target.parent.is_dir():
        raise SessionsRefused(f"there is no folder {target.parent}; make it first")
    if _is_of_store(target, store):
        raise SessionsRefused(f"{target} is no file that an export may replace; choose another")
    if os.path.lexists(target):
        if not force:
            raise SessionsRefused(f"{target} exists; --force replaces it")
        if target.exists() and not target.is_file():
            raise SessionsRefused(f"{target} is no file that an export may replace; choose another")


def _is_of_store(target: Path, store: Path) -> bool:
    """Whether that is, or would be, the store, a log of it or the lock of its server, by any name."""
    if target.parent.samefile(store.parent) and target.name.startswith((store.name, LOCK_NAME)):
        return True
    places = (store, *store.parent.glob(f"{store.name}-*"), store.with_name(LOCK_NAME))
    return target.exists() and any(place.exists() and target.samefile(place) for place in places)


@contextmanager
def _whole(target: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Yield a file that gets the name of `target` when the block ends well, and goes otherwise."""
    draft = draft_beside(target)
    try:
        with draft.open("wb") as file:
            yield file
        try:
            publish(draft, target, force=force)
        except FileExistsError:
            raise SessionsRefused(f"{target} was made meanwhile; --force replaces it") from None
    finally:
        draft.unlink(missing_ok=True)


def _batches(lines: Sequence[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        if batch and (size + line.length > _BATCH_BYTES or len(batch) == _BATCH_SESSIONS):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line.length
    if batch:
        yield batch
