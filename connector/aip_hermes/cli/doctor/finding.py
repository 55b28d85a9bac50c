"""One line of the doctor."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from aip_hermes.cli.aipctl.terminal import safe_text

__all__ = ["Finding", "Level", "fail", "fine", "line_of", "print_findings", "warn"]

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """check: what was asked, of a closed set. detail: what was found. remedy: the next step; empty with `ok`."""

    check: str
    level: Level
    detail: str
    remedy: str = ""


def fine(check: str, detail: str) -> Finding:
    return Finding(check=check, level="ok", detail=detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    """It works now, and may not tomorrow."""
    return Finding(check=check, level="warn", detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(check=check, level="fail", detail=detail, remedy=remedy)


def print_findings(found: Sequence[Finding], *, as_json: bool) -> int:
    """Print the findings on stdout, a line each or one JSON object; return 1 where one of them is `fail`, else 0."""
    healthy = all(finding.level != "fail" for finding in found)
    if as_json:
        print(json.dumps({"ok": healthy, "checks": [asdict(finding) for finding in found]}, ensure_ascii=False))
    else:
        for finding in found:
            print(line_of(finding))
    return 0 if healthy else 1


def line_of(finding: Finding) -> str:
    """Return what is printed of it, with colours on a terminal."""
    mark = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}[finding.level]
    if sys.stdout.isatty():
        colour = {"ok": 32, "warn": 33, "fail": 31}[finding.level]
        mark = f"\x1b[{colour}m{mark}\x1b[0m"
    advice = f"; {finding.remedy}" if finding.remedy else ""
    return f"{mark}  {finding.check:<10} {safe_text(finding.detail + advice)}"
