"""`aip-hermes conformance`: plays the kit and prints its report; data for people or as JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from aip_hermes import log
from aip_hermes.cli.aipctl.terminal import safe_text
from aip_hermes.cli.conformance.connector_scenarios import PLAYED
from aip_hermes.cli.conformance.kit import Check
from aip_hermes.cli.conformance.play import Scenarios, play

__all__ = ["lines", "report", "run_conformance"]


async def run_conformance(*, evidence: Path | None, as_json: bool, scenarios: Scenarios = PLAYED) -> int:
    """Print the report on stdout; return 0 only where every check holds, else 1.

    Logs of this process go to a file that is closed afterwards: the process ends with it.
    """
    with _folder(evidence) as folder, (folder / "log.jsonl").open("w", encoding="utf-8") as stream:
        log.configure(stream=stream, console=False)
        checks = await play(folder, scenarios=scenarios)
        found = report(checks)
        if evidence is not None:
            (folder / "report.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(lines(checks)))
    return 0 if found["passed"] else 1


def report(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the report as JSON: `passed`, the counts, and each check with its assertions and artifacts."""
    return {"passed": all(check.passed for check in checks), **_counts(checks), "checks": [_told(c) for c in checks]}


def lines(checks: Sequence[Check]) -> Iterator[str]:
    """Yield the report for people, a line for each check and each of its assertions."""
    for check in checks:
        mark = "FAIL" if not check.passed else "ok  " if check.required else "n/a "
        yield f"{mark}  {check.id}: {_said(check)}"
        if not check.required or check.failure is not None:
            continue
        for name, held in check.assertions.items():
            note = f" (not as in the kit: {check.notes[name]})" if name in check.notes else ""
            yield f"      {'ok  ' if held else 'FAIL'}  {name}{note}"
            if name in check.differences:
                expected, observed = check.differences[name]
                yield f"            expected: {safe_text(json.dumps(expected, default=str))}"
                yield f"            observed: {safe_text(json.dumps(observed, default=str))}"
    counts = _counts(checks)
    wanted = [check for check in checks if check.required]
    yield (
        f"{len(checks)} checks: {sum(check.passed for check in wanted)} of {len(wanted)} that apply hold; "
        f"{counts['held']} of {counts['applicable']} assertions that apply, of {counts['assertions']} in the kit"
    )


def _said(check: Check) -> str:
    if check.failure is not None:
        return f"ended early: {safe_text(check.failure)}"
    if not check.required:
        return check.reason or "does not apply"
    return f"evidence {', '.join(check.artifacts)}" if check.artifacts else "no evidence"


def _counts(checks: Sequence[Check]) -> dict[str, int]:
    """Count the assertions of behaviour; the admission, which comes first, has none of these."""
    behaviour = checks[1:]
    held = [held for check in behaviour if check.required for held in check.assertions.values()]
    return {
        "assertions": sum(len(check.assertions) for check in behaviour),
        "applicable": len(held),
        "held": held.count(True),
    }


def _told(check: Check) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": check.id,
        "required": check.required,
        "passed": check.passed,
        "assertions": dict(check.assertions),
        "artifacts": list(check.artifacts),
    }
    if check.reason is not None:
        told["reason"] = check.reason
    if check.notes:
        told["notes"] = dict(check.notes)
    if check.failure is not None:
        told["failure"] = check.failure
    if check.differences:
        told["differences"] = {
            name: {"expected": _plain(expected), "observed": _plain(observed)}
            for name, (expected, observed) in check.differences.items()
        }
    return told


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, default=str))


@contextmanager
def _folder(evidence: Path | None) -> Iterator[Path]:
    """Yield the folder for stores and log: the given one, which must be new or empty, or one that goes again."""
    if evidence is None:
        with tempfile.TemporaryDirectory(prefix="aip-hermes-conformance-") as made:
            yield Path(made)
        return
    evidence.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(evidence.iterdir()):
        raise click.UsageError(f"--evidence {evidence} is not empty; name a new folder")
    yield evidence
