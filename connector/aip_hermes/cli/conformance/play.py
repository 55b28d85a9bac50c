"""Plays every scenario in a folder of its own, whatever became of the one before, and makes the report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aip_hermes.cli.conformance.connector_scenarios import PLAYED, Observed
from aip_hermes.cli.conformance.kit import Check, kit_report
from aip_hermes.cli.conformance.people import Crash
from aip_hermes.cli.conformance.site import KitSite
from aip_hermes.wire import Capability

__all__ = ["Scenarios", "play"]

Scenarios = Mapping[str, Callable[[KitSite], Awaitable[Observed]]]

_LONGEST_S = 120.0


async def play(folder: Path, *, scenarios: Scenarios = PLAYED) -> list[Check]:
    """Return the thirteen checks. folder: gets a folder with the store of each scenario."""
    observed: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {}
    failures: dict[str, str] = {}
    published: list[Capability] = []
    for name, scenario in scenarios.items():
        place = folder / name
        try:
            place.mkdir(mode=0o700)
            async with asyncio.timeout(_LONGEST_S), KitSite.before(place) as site:
                published = [entry.capability for entry in site.published]
                observed[name] = await scenario(site)
        except TimeoutError:
            failures[name] = "did not end in time"
        except (Exception, Crash) as failure:  # the report says what it was, and the others are played
            failures[name] = f"{type(failure).__name__}: {failure}"
    return kit_report(published, observed, failures=failures)
