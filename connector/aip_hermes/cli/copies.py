"""`aip-hermes backup` and `aip-hermes restore`: the thin edge of the store's copies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from aip_hermes.cli.ending import stoppable
from aip_hermes.cli.ready import announce
from aip_hermes.database import back_up, restore
from aip_hermes.database.backup import Progress
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from aip_hermes.settings import Settings

__all__ = ["run_backup", "run_restore", "telling"]


def run_backup(*, config: Path, target: Path, force: bool) -> None:
    """Copy the store of a settings file while its server runs or not; print one JSON line about the copy.

    Raises: SettingsError, CopyRefused, StoreUnavailable, StoreRefused, OSError.
    """
    store = Settings.load(config).store.path
    with stoppable(), telling("copying") as progress:
        made = back_up(
            store, target, migrations=MIGRATIONS, application_id=APPLICATION_ID, force=force, progress=progress
        )
    announce({"backup": str(made.path), "bytes": made.size, "schema_version": made.schema_version})


def run_restore(*, config: Path, backup: Path) -> None:
    """Put a backup in the place of the store; print one JSON line, and on stderr what it means.

    Raises: SettingsError, AlreadyOwned, CopyRefused, StoreUnavailable, StoreRefused, OSError.
    """
    store = Settings.load(config).store.path
    with stoppable(), telling("restoring") as progress:
        done = restore(
            store,
            backup,
            migrations=MIGRATIONS,
            application_id=APPLICATION_ID,
            now_ms=SystemClock().now_ms(),
            progress=progress,
        )
    announce({"store": str(done.path), "bytes": done.size, "kept": None if done.kept is None else str(done.kept)})
    if done.kept is not None:
        click.echo(f"the store that was there is kept as {done.kept}", err=True)
    click.echo(
        "actions after the backup was made are unknown to this store, and their idempotency keys protect nothing: "
        "read the targets before sending them again",
        err=True,
    )


@contextmanager
def telling(verb: str) -> Iterator[Progress | None]:
    """Show how far a copy is, on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
