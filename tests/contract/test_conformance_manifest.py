"""The manifest report on what is published, and the page that tells users where this differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aip_hermes.contract import Catalog, load_operations
from aip_hermes.ids import TenantId
from tests.support.conformance_manifest import CHECKS, manifest_report
from tests.support.contract_offers import endpoint_offers

PARITY = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "parity.md").read_text(encoding="utf-8")

KEYLESS = "an effect other than read without a required key"
UNAPPROVED = "a grave effect without approval"
READS = {name for name, row in load_operations().items() if row.read_only}
TURNS = {"chat", "chat_stream", "responses", "responses_stream", "session_chat", "session_chat_stream"}


@pytest.mark.requirement("conformance:manifest:report")
def test_the_manifest_report_finds_the_known_deviations_exactly() -> None:
    manifest = Catalog(endpoint_offers()).manifest(TenantId("tenant-a"))

    report = manifest_report(manifest, required=("aip.native.http.v1", "aip.connector.hermes_agent.v1"))

    assert tuple(report) == CHECKS
    assert report.pop("enterprise.capability_contract") == {
        *((name, KEYLESS) for name in READS | TURNS),
        *((name, UNAPPROVED) for name in TURNS),
    }
    assert report == {check: set() for check in CHECKS if check != "enterprise.capability_contract"}


@pytest.mark.requirement("conformance:manifest:report")
def test_what_deviates_are_reads_over_the_network_and_turns_only() -> None:
    rows = load_operations()

    assert {name for name, row in rows.items() if "send_message" in row.effects and not row.approval} == TURNS
    assert all(set(rows[name].effects) == {"read", "external_network"} for name in READS)
    assert {name for name, row in rows.items() if row.key == "optional"} == READS | TURNS


@pytest.mark.requirement("conformance:parity:page")
def test_the_page_names_every_decision_and_every_deviation() -> None:
    told = {int(number) for number in re.findall(r"^\| D(\d+) \|", PARITY, flags=re.MULTILINE)}
    assert told == set(range(1, 26))
    assert all(f"`{name}`" in PARITY for name in TURNS)
    assert f"{len(READS)} reads" in PARITY
    assert "spec/" not in PARITY
