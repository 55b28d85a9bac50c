"""Conditions that a reviewer attaches to an approval, checked on the frozen input.

Source: AIP HTTP surface, "Who may decide", step 14; wire model "ApprovalConstraint".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.runtime.failures import NotAuthorized, decision_refused

__all__ = ["check_constraints"]

_ABSENT: Final = object()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(found: Any, wanted: Any) -> bool:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (found, wanted))
        texts = isinstance(found, str) and isinstance(wanted, str)
        return (numbers or texts) and compare(found, wanted)

    return test


def _same(found: Any, wanted: Any) -> bool:
    return bool(wire.canonical_json(found) == wire.canonical_json(wanted))


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return isinstance(wanted, str) and wanted in found
    return isinstance(found, list) and any(_same(member, wanted) for member in found)


def _sized(found: Any, wanted: Any) -> bool:
    return isinstance(found, str | list) and isinstance(wanted, int) and not isinstance(wanted, bool)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _same,
    "neq": lambda found, wanted: not _same(found, wanted),
    "lt": _ordered(lambda found, wanted: found < wanted),
    "lte": _ordered(lambda found, wanted: found <= wanted),
    "gt": _ordered(lambda found, wanted: found > wanted),
    "gte": _ordered(lambda found, wanted: found >= wanted),
    "contains": _contains,
    "max_length": lambda found, wanted: _sized(found, wanted) and len(found) <= wanted,
    "min_length": lambda found, wanted: _sized(found, wanted) and len(found) >= wanted,
    "in": lambda found, wanted: isinstance(wanted, list) and any(_same(found, member) for member in wanted),
}


def check_constraints(constraints: Sequence[wire.ApprovalConstraint], value: Any) -> None:
    """Raise the refusal of the first constraint that does not hold; an unknown operator does not hold."""
    for constraint in constraints:
        found = _at(value, constraint.field)
        if found is _ABSENT:
            raise _refused("missing_field", "is not in the input", constraint)
        test = _OPERATORS.get(constraint.operator)
        if test is None or not test(found, constraint.value):
            raise _refused("failed", "does not satisfy the constraint", constraint)


def _at(value: Any, pointer: str) -> Any:
    """Follow a JSON pointer; the leading slash is optional."""
    for raw in pointer.removeprefix("/").split("/"):
        part = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _refused(rule: str, problem: str, constraint: wire.ApprovalConstraint) -> NotAuthorized:
    return decision_refused(
        f"policy.approval_constraint_{rule}",
        f"`{constraint.field[:64]}` {problem}",
        details={"field": constraint.field[:64], "operator": constraint.operator[:32]},
    )
