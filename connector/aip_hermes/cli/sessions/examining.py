"""`aip-hermes sessions doctor`: what there is to say about the sessions of a folder, and the one repair."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from aip_hermes.cli.aipctl.terminal import say
from aip_hermes.cli.doctor.finding import Finding, fail, fine, print_findings, warn
from aip_hermes.cli.sessions.place import looking, store_in, writing
from aip_hermes.cli.sessions.progress import counting
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.database import AlreadyOwned, Connection, OwnerLock, StoreFailure, Untouched
from aip_hermes.embedded.folder import LOCK_NAME
from aip_hermes.embedded.session_db import pruning
from aip_hermes.embedded.session_db.holders import holder_is_gone
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.search import index
from aip_hermes.ports import SystemClock

__all__ = ["run_examine"]

_LOW_BYTES: Final = 1 << 30


async def run_examine(*, folder: Path, repair: bool, as_json: bool) -> int:
    """Print the findings on stdout; return 1 where one of them is `fail`, else 0.

    repair: make the search index anew first, which needs the folder's lock. Raises SessionsRefused, AlreadyOwned,
    StoreFailure.
    """
    path = store_in(folder)
    if repair:
        await _repair(path)
    return print_findings(list(_examined(path)), as_json=as_json)


async def _repair(path: Path) -> None:
    try:
        # A server that runs would wait for the index longer than it waits for anybody.
        with OwnerLock(path.parent, name=LOCK_NAME):
            async with writing(path) as db:
                with counting("indexing", 0) as progress:
                    await db.rebuild_search_index(progress)
    except AlreadyOwned as error:
        raise SessionsRefused(f"{error}: the search index is made anew while no server runs") from None
    say("the search index was made anew")


def _examined(path: Path) -> Iterator[Finding]:
    holder = OwnerLock.holder_of(path.parent, name=LOCK_NAME)
    served = f"process {holder.pid or 'unknown'} serves {path.parent}" if holder else f"no server runs on {path.parent}"
    yield fine("server", served)
    try:
        with looking(path) as found:
            yield _schema(path, found)
            yield _integrity(path, found)
            if found.schema_version == found.known_version:
                connection = Connection(found.raw)
                yield from _contents(connection)
                yield _leases(connection)
    except StoreFailure as error:
        yield fail("store", str(error), "start its server once; if that does not help, put back a copy of the folder")
    yield _disk(path)


def _schema(path: Path, found: Untouched) -> Finding:
    files = [path, path.with_name(path.name + "-wal")]
    size = sum(file.stat().st_size for file in files if file.exists())
    detail = f"{path}: schema {found.schema_version} of {found.known_version}, {_size(size)}"
    if found.schema_version < found.known_version:
        return warn(
            "store", detail, "the next start of the server brings it to the newest schema; copy the folder first"
        )
    return fine("store", detail)


def _integrity(path: Path, found: Untouched) -> Finding:
    problems = found.problems()
    if not problems:
        return fine("integrity", "every page, index and reference is as it should be")
    remedy = (
        f"stop the server, copy {path.parent}, then try `aip-hermes sessions doctor --repair`; "
        "`aip-hermes sessions export --all` saves what can still be read"
    )
    return fail("integrity", f"{len(problems)} problems, the first: {problems[0][:200]}", remedy)


def _contents(connection: Connection) -> Iterator[Finding]:
    (counted,) = connection.execute(QUERIES["store_figures"])
    used = _size(pruning.logical_size(connection))
    sessions = f"{counted['sessions']} sessions, {counted['open']} of them open"
    yield fine("contents", f"{sessions}; {counted['messages']} messages; {used} in use")
    state = index.state_of(connection)
    remedy = "stop the server, then `aip-hermes sessions doctor --repair`"
    if state.indexed_through is not None:
        waiting = f"; {state.waiting} messages enter it with the next search" if state.waiting else ""
        yield fine("index", f"the search index is there{waiting}")
    elif state.cause:
        yield fail("index", f"the search index was given up: {state.cause[:200]}; searches are slow", remedy)
    else:
        yield warn("index", "there is no search index yet; searches are slow", remedy)


def _leases(connection: Connection) -> Finding:
    held = connection.execute(QUERIES["leases_in_force"], {"now": SystemClock().now_ms() / 1000})
    gone = sum(holder_is_gone(lease["holder"]) for lease in held)
    if gone:
        remedy = "nothing has to be done: the next turn takes them over"
        return warn("leases", f"{gone} of {len(held)} leases are of processes that are gone", remedy)
    turns = sum(lease["kind"] == "turn" for lease in held)
    return fine("leases", f"{turns} turns and {len(held) - turns} compressions run; none is stuck")


def _disk(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    detail = f"{_size(free)} free where {path.parent} is"
    if free < max(_LOW_BYTES, 2 * path.stat().st_size):
        remedy = (
            "make room: `aip-hermes sessions prune --older-than 90d` removes what is old; a full disk stops every turn"
        )
        return warn("disk", detail, remedy)
    return fine("disk", detail)


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
