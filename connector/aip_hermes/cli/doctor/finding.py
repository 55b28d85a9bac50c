"""One line of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Level", "fail", "fine", "warn"]

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
