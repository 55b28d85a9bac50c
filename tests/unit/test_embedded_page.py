"""The page on quirks and faults is held by the tables of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aip_hermes.embedded import QUIRKS, planned_faults
from aip_hermes.embedded.faults import FAULTS

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/embedded-hermes.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.requirement("embedded:page")
def test_the_quirks_are_those_of_the_code() -> None:
    assert rows("Quirks") == [[f"`{name}`", text] for name, text in QUIRKS.items()]
    assert len(QUIRKS) == 6


@pytest.mark.requirement("embedded:page")
def test_the_faults_are_those_of_the_code() -> None:
    assert rows("Faults") == [
        [f"`{name}`", fault.sentence, ", ".join(f"`{each}`" for each in sorted(fault.operations or ())) or "any"]
        for name, fault in FAULTS.items()
    ]


@pytest.mark.requirement("embedded:page")
def test_what_the_page_types_is_accepted() -> None:
    typed = re.findall(r"--fault (\w[\w:-]+)", PAGE.partition("```sh")[2].partition("```")[0])
    assert typed
    planned_faults(typed)
    named = re.findall(
        r"`(\w+)`", PAGE.partition("Operations have the names of")[2].partition("such as ")[2].partition(".")[0]
    )
    assert len(named) == 7
    planned_faults(f"html-502:{operation}:1" for operation in named)
