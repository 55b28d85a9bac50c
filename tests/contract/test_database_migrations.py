"""A process that dies while it brings a store to its schema, before one statement after the other."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aip_hermes.database.migrations import apply, check, load
from aip_hermes.runtime.store import MIGRATIONS

_KILLED = 9


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _schema(path: Path, *, below: int | None = None) -> list[tuple[str, str]]:
    """Return what a store has been made of; below: an untouched store brought to that version only."""
    with closing(_opened(path)) as raw:
        if below is not None:
            apply(raw, load(MIGRATIONS)[:below], name="s", now_ms=1)
        return raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


def _killed_before_statement(number: int, path: Path) -> bool:
    """Migrate in a child that ends right before its `number`th statement; whether it got that far."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(_statement: str) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                os._exit(_KILLED)

        raw = _opened(path)
        raw.set_trace_callback(count)
        try:
            apply(raw, load(MIGRATIONS), name="s", now_ms=1)
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, _KILLED)
    return code == _KILLED


@pytest.mark.requirement("database:migrate:killed")
def test_a_migration_that_is_killed_leaves_the_version_before_it_and_the_next_start_goes_on(tmp_path: Path) -> None:
    migrations = load(MIGRATIONS)
    versions = [_schema(tmp_path / f"version-{n}", below=n) for n in range(len(migrations) + 1)]
    number, reached = 1, set[int]()
    while _killed_before_statement(number, path := tmp_path / f"killed-{number}"):
        with closing(_opened(path)) as raw:
            done = check(raw, migrations, name="s")
        reached.add(done)
        assert _schema(path) == versions[done]
        assert _schema(path, below=len(migrations)) == versions[-1]
        number += 3
    assert reached >= set(range(len(migrations)))
