"""The store: whose it is, whether it is whole, how large, what is stuck in it, and how much room is left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from aip_hermes.cli.doctor.finding import Finding, fail, fine, warn
from aip_hermes.database import (
    AlreadyOwned,
    Connection,
    StoreFailure,
    StoreUnavailable,
    Untouched,
    open_untouched,
    shared_file_system,
)
from aip_hermes.ports import Clock
from aip_hermes.runtime.figures import StoreFigures, figures
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS

__all__ = ["contents", "disk", "mount", "owner", "store"]

_LOW_BYTES: Final = 1 << 30
_NO_BYTES: Final = 64 << 20


def owner(path: Path, holder: AlreadyOwned | None) -> Finding:
    """Who works on the data folder."""
    if holder is None:
        return fine("server", f"no server runs on {path.parent}")
    return fine("server", f"process {holder.pid or 'unknown'} serves {path.parent}")


def store(path: Path, holder: AlreadyOwned | None, *, clock: Clock) -> Iterator[Finding]:
    """Look at the store without changing a byte of it."""
    if not path.exists():
        yield fine("store", f"{path} is made at the first start")
        return
    try:
        with open_untouched(path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as found:
            yield from _schema(path, found)
            yield _integrity(path, found)
            if found.schema_version == found.known_version:
                yield from contents(figures(Connection(found.raw), now=clock.now_ms()), served=holder is not None)
    except StoreFailure as error:
        remedy = (
            "start the server once, then ask again" if _passing(error) else "restore a backup: `aip-hermes restore`"
        )
        yield fail("store", str(error), remedy)


def disk(path: Path) -> Finding:
    """How much room the data folder has."""
    folder = next(place for place in path.parents if place.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{_size(free)} free where {folder} is"
    remedy = "make room: `aip-hermes prune --older-than 30d` forgets what is old; a full disk stops every action"
    if free < _NO_BYTES:
        return fail("disk", detail, remedy)
    used = path.stat().st_size if path.exists() else 0
    if free < max(_LOW_BYTES, 2 * used):
        return warn("disk", detail, remedy)
    return fine("disk", detail)


def mount(path: Path, *, mounts: str | None = None) -> Finding:
    """Whether the data folder is on a disk of this machine. mounts: as of `shared_file_system`."""
    folder = path.parent
    kind = shared_file_system(folder, mounts=mounts)
    if kind is None:
        return fine("mount", f"{folder} is on a file system of this machine's own")
    return warn(
        "mount",
        f"{folder} is on {kind}, which machines share: the store does without a write-ahead log there and is slower",
        f"write a `dsn` on a local disk under [store]; move {path.name} there with `aip-hermes backup` and `restore`",
    )


def _passing(error: StoreFailure) -> bool:
    return isinstance(error, StoreUnavailable) and error.kind in ("io", "locked")


def _schema(path: Path, found: Untouched) -> Iterator[Finding]:
    files = [path, path.with_name(path.name + "-wal")]
    size = sum(file.stat().st_size for file in files if file.exists())
    detail = f"{path}: schema {found.schema_version} of {found.known_version}, {_size(size)}"
    if found.schema_version < found.known_version:
        yield warn("store", detail, "make a backup; the next start of the server brings it to the newest schema")
    else:
        yield fine("store", detail)


def _integrity(path: Path, found: Untouched) -> Finding:
    problems = found.problems()
    if not problems:
        return fine("integrity", "every page, index and reference is as it should be")
    remedy = f"stop the server, keep a copy of {path.parent}, then `aip-hermes restore` the newest backup that is whole"
    return fail("integrity", f"{len(problems)} problems, the first: {problems[0][:200]}", remedy)


def contents(found: StoreFigures, *, served: bool) -> Iterator[Finding]:
    """What is in it, and whether anything of it is stuck or uncertain. served: somebody works on it."""
    counted = f"{found.actions} actions; {found.queued} queued, {found.running} running, {found.pending} await approval"
    yield fine("contents", counted)
    if found.stuck and served:
        remedy = "if it stays so, restart the server: it brings every action to a definite state"
        yield warn("leases", f"{found.stuck} actions run on although their time is up", remedy)
    elif found.running and not served:
        remedy = "start the server: it brings each of them to a definite state"
        yield warn("leases", f"{found.running} actions were left running by a server that is gone", remedy)
    else:
        yield fine("leases", "no action is stuck")
    if found.uncertain:
        remedy = "read each target before sending anything like it again: `aipctl action reconcile URL --all-uncertain`"
        yield warn("uncertain", f"{found.uncertain} actions have an outcome that nobody knows", remedy)
    else:
        yield fine("uncertain", "no action has an outcome that nobody knows")


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
