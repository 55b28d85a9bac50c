"""Asks every question, whatever the answer to the one before, and prints one line each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from aip_hermes.app import connectors_of
from aip_hermes.cli.doctor import files, network, reviewers, shared_store, storage
from aip_hermes.cli.doctor.finding import Finding, fail, print_findings
from aip_hermes.database import OwnerLock, SharedPlace
from aip_hermes.ports import Clock, NoFaults, SystemClock, new_id
from aip_hermes.runtime import Authorities
from aip_hermes.settings import Settings, SettingsError

__all__ = ["examine", "run_doctor"]


async def run_doctor(*, config: Path, as_json: bool, clock: Clock | None = None) -> int:
    """Print the findings on stdout; return 1 where one of them is `fail`, else 0."""
    found = await examine(config, clock=clock or SystemClock())
    return print_findings(found, as_json=as_json)


async def examine(config: Path, *, clock: Clock) -> list[Finding]:
    """Return what there is to say about the installation of a settings file. Changes nothing."""
    try:
        settings = Settings.load(config)
    except SettingsError as error:
        return [fail("settings", str(error), "correct that line, then ask again; nothing else was looked at")]
    return [found async for found in _examined(settings, clock=clock)]


async def _examined(settings: Settings, *, clock: Clock) -> AsyncIterator[Finding]:
    yield files.settings_file(settings)
    for finding in files.tokens(settings, clock=clock):
        yield finding
    known, finding = files.authorities(settings, clock=clock)
    yield finding
    for finding in _reviewers(settings, known, clock=clock):
        yield finding
    place = settings.store.place
    holder = None if isinstance(place, SharedPlace) else OwnerLock.holder_of(place.parent)
    if not isinstance(place, SharedPlace):
        yield storage.owner(place, holder)
    yield await network.port(settings, holder)
    for finding in await network.endpoints(settings.endpoints):
        yield finding
    if isinstance(place, SharedPlace):
        async for finding in shared_store.store(place, clock=clock):
            yield finding
        return
    path = place
    for finding in (
        *files.data_folder(path),
        storage.mount(path),
        *storage.store(path, holder, clock=clock),
        storage.disk(path),
    ):
        yield finding


def _reviewers(settings: Settings, known: Authorities, *, clock: Clock) -> Iterator[Finding]:
    built = connectors_of(settings, clock=clock, new_id=new_id, faults=NoFaults())
    yield from reviewers.reviewers(settings, known, built, clock=clock)
