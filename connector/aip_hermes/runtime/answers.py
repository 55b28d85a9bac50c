"""What is kept of a result, and the `action_result` that is read from it.

Kept: status, output, a text for people, error. Derived on reading (design D23): the JSON message part; on a replay
(design D7) the marks in the output. Marks are never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.cancellation import Cancelled

__all__ = [
    "Stored",
    "acknowledged",
    "answer",
    "failed",
    "replay",
    "stored_answer",
    "stored_cancelled",
    "stored_failure",
]

Stored = Mapping[str, Any]
"""`{"status", "output"?, "text"?, "error"?}`; `erased` in place of an output that is gone (runtime/erasure.py)."""


def stored_answer(outcome: Answer) -> dict[str, Any]:
    """Return what is kept of a success."""
    status = "cancelled" if outcome.cancelled else "requires_human" if outcome.requires_human else "completed"
    kept: dict[str, Any] = {"status": status, "output": outcome.output}
    if outcome.text and outcome.text.strip():
        kept["text"] = outcome.text
    return kept


def stored_failure(failure: ActionFailed) -> dict[str, Any]:
    """Return what is kept of a failure."""
    kept: dict[str, Any] = {"status": "failed", "error": wire.protocol_error(failure).wire()}
    if failure.output is not None:
        kept["output"] = failure.output
    return kept


def stored_cancelled(cancelled: Cancelled) -> dict[str, Any]:
    """Return what is kept of a cancelled attempt. The error says whether the effect may have happened."""
    output: dict[str, Any] = {"cancelled": True}
    if cancelled.reason is not None:
        output["reason"] = cancelled.reason
    if cancelled.evidence is not None:
        output["_aip"] = {"cancel": dict(cancelled.evidence)}
    return {"status": "cancelled", "output": output, "error": wire.protocol_error(cancelled.failure).wire()}


def answer(action_id: str, stored: Stored) -> wire.ActionResult:
    """Return a stored result as it is; of one whose text was erased, what is left."""
    return _result(action_id, stored, _output(stored))


def acknowledged(action_id: str) -> wire.Ack:
    """Return what a queued submission is answered with."""
    return wire.Ack(
        action_id=action_id,
        status="queued",
        reason="accepted for asynchronous execution",
        queue={"scheduler": "aip-runtime"},
    )


def failed(action_id: str, failure: ActionFailed) -> wire.ActionResult:
    """Return the failed result of something that was not stored."""
    return answer(action_id, stored_failure(failure))


def replay(
    action_id: str, stored: Stored, *, first_seen_at: int, expires_at: int | None, input_differs: bool
) -> wire.ActionResult:
    """Return a stored result to another submission of its key, marked. action_id: the original one."""
    output = _output(stored)
    marked: dict[str, Any] = dict(output) if isinstance(output, Mapping) else {}
    ours = marked.get("_aip")
    marked["_aip"] = {
        **(ours if isinstance(ours, Mapping) else {}),
        "replay": {
            "original_action_id": action_id,
            "first_seen_at": wire.rfc3339(first_seen_at),
            "expires_at": None if expires_at is None else wire.rfc3339(expires_at),
            "input_differs": input_differs,
        },
    }
    marked["idempotent_replay"] = True
    return _result(action_id, stored, marked)


def _output(stored: Stored) -> Any:
    """Return the output; in place of an erased one, when and why it went, and its hash (design D23)."""
    return {"_aip": {"erased": stored["erased"]}} if "erased" in stored else stored.get("output")


def _result(action_id: str, stored: Stored, output: Any) -> wire.ActionResult:
    message: list[dict[str, Any]] = []
    if "text" in stored:
        message.append({"type": "text", "text": stored["text"], "format": "plain"})
    if stored["status"] == "completed" and "output" in stored:
        message.append({"type": "json", "data": stored["output"]})
    members: dict[str, Any] = {"action_id": action_id, "status": stored["status"], "message": message}
    if output is not None:
        members["output"] = output
    if "error" in stored:
        members["error"] = stored["error"]
    return wire.ActionResult.model_validate(members)
