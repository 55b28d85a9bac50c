"""Which run goes on after an answer, and which one an answer shows to be over (design D13).

A run that names a session keeps it closed to forks and deletes until its end is seen. Seen is what the endpoint says:
an ending status, or the event that ends the run's stream. That a run is unknown proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from aip_hermes.contract.handler import Answer
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.answer import Asked

__all__ = ["about_run", "ended_run"]

_OVER: Final = ("completed", "failed", "cancelled")


def about_run(answer: Answer, operation: Operation, asked: Asked) -> Answer:
    """Return the answer with the run that it began, or shows to be over, where it is about one."""
    run_id = answer.output.get("run_id") if operation.serial == "run" else None
    begins = _name(asked, run_id) if isinstance(run_id, str) else None
    return replace(answer, begins=begins, ends=ended_run(answer.output, operation, asked))


def ended_run(output: Mapping[str, Any], operation: Operation, asked: Asked) -> str | None:
    """Return the name of the run that an output shows to be over."""
    run_id = asked.subject.ids.get("run_id")
    over = output.get("terminal") is True if operation.stream == "run" else output.get("status") in _OVER
    return _name(asked, run_id) if run_id is not None and over else None


def _name(asked: Asked, run_id: str) -> str:
    return f"hermes_agent:{asked.endpoint.id}:run:{run_id}"
