"""The list of promises and the tests agree."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).resolve().parents[1]


@cache
def _claims() -> dict[str, list[str]]:
    """Promise id → test files that name it in a `requirement` mark."""
    claims: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        claims.setdefault(argument.value, []).append(path.name)
    return claims


def test_every_promise_has_a_test() -> None:
    assert sorted(set(REQUIREMENTS) - set(_claims())) == []


def test_every_named_promise_exists() -> None:
    assert sorted(set(_claims()) - set(REQUIREMENTS)) == []


@pytest.mark.parametrize("promise", REQUIREMENTS.values(), ids=lambda p: p.id)
def test_a_promise_is_one_sentence_with_a_source(promise: object) -> None:
    sentence, source = getattr(promise, "sentence", ""), getattr(promise, "source", "")
    assert sentence.endswith(".")
    assert source.strip()
