"""How the demo talks: one line per step while it runs, then a table that tells the whole story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from aip_hermes.cli.aipctl.terminal import safe_text
from aip_hermes.cli.demo.step import Step

__all__ = ["line_of", "print_table"]

_NARROW = 100
_COLUMNS = {"": 3, "step": 10, "sent through AIP": 17, "requests at Hermes": 8, "verified": 8}
"""Headings, and widths for a narrow terminal: lines break between words, not inside the name of an operation."""


def line_of(step: Step) -> str:
    """Return what was sent and what was verified, in one line (notes and a failure follow on their own)."""
    mark = "FAILED" if step.failure else "ok"
    text = (
        f"{step.number:>3}  {step.title:<26} {mark:<6} sent {step.sent}: {'; '.join(step.verified) or 'nothing held'}"
    )
    text += "".join(f"\n     note: {note}" for note in step.notes)
    return f"{text}\n     {safe_text(step.failure)}" if step.failure else text


def print_table(steps: Sequence[Step], console: Console) -> None:
    """Print the table: per step what was sent, what reached the endpoint, and how many claims held."""
    table = Table(title="What was sent, what reached Hermes, what was verified", title_justify="left")
    narrow = console.width < _NARROW
    for heading, width in _COLUMNS.items():
        table.add_column(
            heading, overflow="fold", justify="left" if heading else "right", width=width if narrow else None
        )
    for step in steps:
        verdict = "FAILED" if step.failure else f"{len(step.verified)} of {len(step.verified)}"
        table.add_row(step.number, step.title, step.sent, _requests(step), verdict)
    console.print(table)


def _requests(step: Step) -> str:
    counted = Counter(seen.method for seen in step.requests)
    return ", ".join(f"{count} {method}" for method, count in sorted(counted.items())) or "none"
