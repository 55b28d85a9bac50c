"""The connector kit on the real connector, runtime and store before a provider double: one report, thirteen checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes.cli.conformance.connector_scenarios import PLAYED, Observed
from aip_hermes.cli.conformance.kit import ADMISSION, ADMITTED, SCENARIOS, kit_report
from aip_hermes.cli.conformance.site import KitSite

NUMBERS = {"admission": {"admitted": ADMITTED}} | {
    scenario.id: {each.name: each.expected for each in scenario.assertions}
    for scenario in SCENARIOS
    if scenario.assertions
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return a folder of its own for each scenario."""
    made = {scenario: tmp_path / scenario for scenario in PLAYED}
    for folder in made.values():
        folder.mkdir()
    return made


async def played(folder: Path, scenario: str) -> Observed:
    async with KitSite.before(folder) as site:
        return await PLAYED[scenario](site)


@pytest.mark.requirement(
    "conformance:kit:admission",
    "conformance:kit:identity",
    "conformance:kit:schema",
    "conformance:kit:idempotency",
    "conformance:kit:cancellation",
    "conformance:kit:streaming",
    "conformance:kit:errors",
    "conformance:kit:restart",
    "conformance:kit:retry",
    "conformance:kit:approvals",
    "conformance:kit:audit",
)
@pytest.mark.parametrize("scenario", NUMBERS)
async def test_a_scenario_gives_the_numbers_of_the_kit(tmp_path: Path, scenario: str) -> None:
    observed, artifacts = await played(tmp_path, scenario)

    assert observed == NUMBERS[scenario]
    assert artifacts
    assert all(artifact.strip() for artifact in artifacts)


@pytest.mark.requirement("conformance:kit:complete")
async def test_the_report_names_every_assertion_of_the_kit(tmp_path: Path, folders: dict[str, Path]) -> None:
    observed = {scenario: await played(folders[scenario], scenario) for scenario in PLAYED}
    async with KitSite.before(tmp_path) as site:
        report = kit_report([published.capability for published in site.published], observed)

    assert len(report) == 13
    assert report[0].id == ADMISSION
    assert sum(len(scenario.names) for scenario in SCENARIOS) == 38
    assert {check.id.rpartition(".")[2] for check in report if check.passed and check.artifacts} == {
        "atomic_manifest_admission",
        *(set(PLAYED) - {"admission"}),
    }
    waiting = {check.id.rpartition(".")[2] for check in report if not check.passed}
    assert waiting == set()
    assert all(check.reason for check in report if not check.artifacts)
    assert {check.id.rpartition(".")[2] for check in report if not check.required} == {
        "transaction_lifecycle",
        "webhook_security",
    }
    behaviour = [held for check in report[1:] for held in check.assertions.values()]
    assert (behaviour.count(True), behaviour.count(None), behaviour.count(False)) == (31, 7, 0)


@pytest.mark.requirement("conformance:kit:complete")
def test_what_is_proven_in_another_way_is_named() -> None:
    instead = [each.name for scenario in SCENARIOS for each in scenario.assertions if each.instead]

    assert instead == ["invalid_output_rejected"]
