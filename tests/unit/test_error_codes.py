"""The table of error codes against the source: nothing is sent that it lacks, nothing is in it that nobody proves."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import aip_hermes
from aip_hermes.errors import AipError
from aip_hermes.server.failures import status_of
from tests.contract.test_error_table import ROWS
from tests.support.error_codes import CODES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "connector" / "aip_hermes"
SERVING = ("contract", "hermes", "runtime", "server")
"""The rooms whose errors reach the wire; those of the clients are raised beside it."""


def _subclasses(cls: type[AipError]) -> set[type[AipError]]:
    return {cls}.union(*(_subclasses(each) for each in cls.__subclasses__()))


def raised() -> dict[str, type[AipError]]:
    """Return code → class of every error that the serving rooms define."""
    for room in SERVING:
        for module in walk_packages(import_module(f"aip_hermes.{room}").__path__, f"aip_hermes.{room}."):
            import_module(module.name)
    rooms = tuple(f"{aip_hermes.__name__}.{room}." for room in SERVING)
    return {cls.code: cls for cls in _subclasses(AipError) if cls.code and cls.__module__.startswith(rooms)}


@pytest.mark.requirement("errors:table-whole")
def test_every_error_class_has_its_row_with_the_same_flags() -> None:
    classes = raised()
    assert len(classes) > 60
    assert classes.keys() <= CODES.keys()
    for code, cls in classes.items():
        row = CODES[code]
        assert (code, cls.category, cls.default_retryable) == (code, row.category, row.retryable)
        assert row.absent is None, code
        if row.carrier == "error":
            assert (code, status_of(cls("x"))) == (code, row.status)


@pytest.mark.requirement("errors:table-whole")
def test_every_rule_that_a_refusal_can_name_has_its_row() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for room in SERVING for file in (SOURCE / room).rglob("*.py"))
    rules = set(re.findall(r'"(policy\.[a-z_.]+)"', text))
    assert len(rules) > 15
    assert rules <= CODES.keys()
    told = {code for code, row in CODES.items() if row.carrier == "rule" and row.absent is None}
    assert {code for code in told if not code.startswith("policy.approval_constraint_")} <= rules  # those are composed


@pytest.mark.requirement("errors:table-whole")
def test_every_row_is_provoked_or_names_who_does_or_why_nobody_can() -> None:
    provoked = {row.rule or row.code for row in ROWS}
    classes = raised()
    for code, row in CODES.items():
        assert [code in provoked, row.proven is not None, row.absent is not None].count(True) == 1, code
        if row.proven is not None:
            text = (ROOT / row.proven).read_text(encoding="utf-8")
            names = [code, code.removeprefix("policy."), code.rpartition(".")[2]]
            names += [classes[code].__name__] if code in classes else []
            assert any(name in text for name in names), code
    assert provoked <= CODES.keys()
