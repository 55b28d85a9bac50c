"""Whether an outcome can be kept, sent and read again; what becomes of one that can't.

A provider may answer JSON that has no place here: a number that is no finite one, nesting that no reader takes. Such an
outcome would end neither as a result nor as a failure, with its key and its session held. So everything passes here
before it is settled. Source: design D1, D2; runtime behaviour §5.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.failures import OutputInvalid

__all__ = ["LEVELS_AROUND", "side", "storable", "unstorable"]

LEVELS_AROUND: Final = 16
"""Nesting that an answer may stand in: envelope, body, result, message part, list of results."""

T = TypeVar("T")


def storable(outcome: T, *, capability_id: str, read_only: bool) -> T | OutputInvalid:
    """Return the outcome, or what is kept of one that can't be: a failure without its details, or a failure.

    A success of a mutation becomes an uncertain failure: the effect has most likely happened.
    """
    if isinstance(outcome, Answer) and (violation := unstorable(outcome.output)) is not None:
        return OutputInvalid(
            "the provider's answer holds JSON that can't be kept",
            details={"capability_id": capability_id, "violations": [violation]},
            uncertain=not read_only,
        )
    if isinstance(outcome, ActionFailed):
        if (violation := unstorable(outcome.details)) is not None:
            outcome.details = {"details_omitted": violation}
        if (violation := unstorable(outcome.output)) is not None:
            outcome.output = {"output_omitted": violation}
    return outcome


def side(outcome: Answer | ActionFailed) -> tuple[object, ...]:
    """Return what reading back may not change: success or which failure, and how certain that is."""
    if isinstance(outcome, Answer):
        return (Answer,)
    return type(outcome), outcome.uncertain, outcome.retryable


def unstorable(value: Any) -> str | None:
    """Return why a value could not be sent to a client and read there, or None."""
    for _ in range(LEVELS_AROUND):
        value = [value]
    try:
        wire.read_json(wire.write_json(value))
    except wire.JsonProblem as exc:
        return f"(root): {exc.reason}"
    except RecursionError:
        return "(root): nested too deeply"
    except (TypeError, ValueError):
        return "(root): no JSON value"
    return None
