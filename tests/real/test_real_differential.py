"""The embedded endpoint beside a real hermes-agent: the same requests and model, the same answers but for a table."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import QUIRKS, OpenAIModel
from tests.real.gateway import RealHermes
from tests.real.known_differences import KNOWN, ONLY_WITH_QUIRKS, Difference
from tests.real.model import NAME
from tests.real.played import differences, played
from tests.real.rows import real_rows
from tests.real.script import SCRIPT
from tests.support.embedded_endpoint import served

pytestmark = pytest.mark.real

Found = dict[tuple[str, str], tuple[Any, Any]]


async def _embedded(hermes: RealHermes, folder: Path, quirks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Play the script on an endpoint of our own, behind which is the model of the real one."""
    model = OpenAIModel(base_url=hermes.model.url, model=NAME)
    try:
        async with served(folder, model=model, quirks=quirks) as running:
            return await played(SCRIPT, running.client, hermes.model, secrets.token_hex(4))
    finally:
        await model.aclose()


def _found(there: dict[str, dict[str, Any]], here: dict[str, dict[str, Any]]) -> Found:
    return {
        (step.name, place): (one, other)
        for step in SCRIPT
        for place, one, other in differences(there[step.name], here[step.name])
    }


def _unexplained(found: Found, known: Sequence[Difference]) -> Found:
    return {at: both for at, both in found.items() if not any(each.explains(*at) for each in known)}


def _unseen(found: Found, known: Sequence[Difference]) -> list[Difference]:
    return [each for each in known if not any(each.explains(*at) for at in found)]


@pytest.mark.requirement("real:differences")
async def test_both_endpoints_answer_alike_but_for_what_is_listed(own_hermes: RealHermes, tmp_path: Path) -> None:
    async with real_rows(own_hermes) as rows:
        there = await played(SCRIPT, rows.client, own_hermes.model, rows.mark)
    plain = _found(there, await _embedded(own_hermes, tmp_path / "plain", ()))
    assert _unexplained(plain, KNOWN) == {}
    assert _unseen(plain, KNOWN) == []
    quirky = _found(there, await _embedded(own_hermes, tmp_path / "quirky", tuple(QUIRKS)))
    lasting = (*(each for each in KNOWN if each.quirk is None), *ONLY_WITH_QUIRKS)
    assert _unexplained(quirky, lasting) == {}
    assert _unseen(quirky, lasting) == []
