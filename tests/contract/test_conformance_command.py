"""`aip-hermes conformance`: the report of the real thing, and what it says when something does not hold."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes.cli.conformance.command import lines, report
from aip_hermes.cli.conformance.connector_scenarios import PLAYED, Observed, admission, identity_credentials
from aip_hermes.cli.conformance.kit import Check
from aip_hermes.cli.conformance.play import play
from aip_hermes.cli.conformance.site import KitSite
from tests.support.client_command import aipctl_environment


def _conformance(
    *arguments: str, folder: Path, program: tuple[str, ...] = ("-m", "aip_hermes.cli.aip_hermes", "conformance")
) -> subprocess.CompletedProcess[str]:
    """Run it far from this checkout: nothing of the tests can be imported, temporary files go to `folder`."""
    place = folder / "elsewhere"
    place.mkdir()
    return subprocess.run(
        [sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        cwd=place,
        env=aipctl_environment({"TMPDIR": str(place)}),
        timeout=300,
        check=False,
    )


def _kept(store: Path) -> str:
    """Return all text of the store's tables."""
    with closing(sqlite3.connect(store)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "".join(repr(row) for table in tables for row in connection.execute(f'SELECT * FROM "{table}"'))  # noqa: S608


@pytest.mark.requirement("conformance:command:passes", "conformance:command:apart")
def test_the_installed_command_reports_that_everything_holds_and_keeps_the_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    done = _conformance("--json", "--evidence", str(evidence), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found == json.loads((evidence / "report.json").read_text())
    assert {name: found[name] for name in ("passed", "assertions", "applicable", "held")} == {
        "passed": True,
        "assertions": 38,
        "applicable": 31,
        "held": 31,
    }
    assert len(found["checks"]) == 13
    for check in (check for check in found["checks"][1:] if check["required"]):
        kept = _kept(evidence / check["id"].rpartition(".")[2] / "runtime.sqlite3")
        assert check["artifacts"]
        assert [artifact for artifact in check["artifacts"] if artifact not in kept] == []
    assert evidence.stat().st_mode & 0o077 == 0
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.requirement("conformance:command:apart")
def test_an_evidence_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = _conformance("--evidence", str(tmp_path), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "elsewhere"}


BROKEN = """
import asyncio, sys
from pathlib import Path
from aip_hermes.cli.conformance import command
from aip_hermes.cli.conformance.connector_scenarios import admission

async def prose(site):
    raise ValueError("no such \\x1b[2J thing")

async def nothing(site):
    return {}, []

scenarios = {"admission": admission, "retry_exhaustion": prose, "audit_redaction": nothing}
sys.exit(asyncio.run(command.run_conformance(evidence=None, as_json=False, scenarios=scenarios)))
"""


@pytest.mark.requirement("conformance:command:fails", "conformance:command:apart")
def test_what_does_not_hold_is_named_and_exits_1(tmp_path: Path) -> None:
    done = _conformance(folder=tmp_path, program=("-c", BROKEN))
    assert (done.returncode, done.stderr) == (1, "")
    assert "ok    connector.atomic_manifest_admission: evidence catalog:" in done.stdout
    assert "FAIL  connector.behavior.retry_exhaustion: ended early: ValueError: no such \\x1b[2J thing" in done.stdout
    assert "FAIL  connector.behavior.audit_redaction: no evidence" in done.stdout
    assert "0 of 31 assertions that apply" in done.stdout.splitlines()[-1]
    assert "\x1b" not in done.stdout
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.fixture
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


async def _otherwise(site: KitSite) -> Observed:
    """Observe that the payload's claim reached the endpoint."""
    seen, artifacts = await identity_credentials(site)
    bound: Any = dict(seen["transport_actor_bound"]) | {"forged_seen": True}
    return {**seen, "transport_actor_bound": bound}, artifacts


async def _without_evidence(site: KitSite) -> Observed:
    return (await identity_credentials(site))[0], []


async def _checked(folder: Path, scenario: Any) -> Check:
    checks = await play(folder, scenarios={"admission": admission, "identity_credentials": scenario})
    assert report(checks)["passed"] is False
    return checks[1]


@pytest.mark.requirement("conformance:command:fails")
async def test_an_observation_that_differs_is_shown_beside_the_right_one(tmp_path: Path, quiet: None) -> None:
    check = await _checked(tmp_path, _otherwise)
    assert (check.passed, list(check.differences)) == (False, ["transport_actor_bound"])
    expected, observed = check.differences["transport_actor_bound"]
    assert isinstance(expected, dict)
    assert observed == expected | {"forged_seen": True}
    told = "\n".join(lines([check]))
    assert '"forged_seen": false' in told
    assert '"forged_seen": true' in told


@pytest.mark.requirement("conformance:command:fails")
async def test_a_check_without_evidence_does_not_pass(tmp_path: Path, quiet: None) -> None:
    check = await _checked(tmp_path, _without_evidence)
    assert (check.passed, set(check.assertions.values())) == (False, {True})


@pytest.mark.requirement("conformance:command:fails")
async def test_where_nothing_could_be_played_nothing_holds(tmp_path: Path, quiet: None) -> None:
    for name in PLAYED:
        (tmp_path / name).write_text("in the way")
    found = report(await play(tmp_path))
    assert (found["passed"], found["applicable"], found["held"]) == (False, 31, 0)
