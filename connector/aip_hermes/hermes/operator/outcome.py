"""From what is known of a run to the binding that keeps it and to the result of an action.

Source: connector contract §18.2 (output), 4 to 6; design D19.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from aip_hermes.contract.handler import Answer, Call, JsonObject
from aip_hermes.hermes.answer import clean_text
from aip_hermes.hermes.failures import HermesFailed, OperatorOutcomeUnknown, OperatorRunFailed, OperatorStartRejected
from aip_hermes.hermes.operator.binding import Binding
from aip_hermes.hermes.operator.following import RunEnd
from aip_hermes.hermes.operator.ground import Ground
from aip_hermes.redact import redact
from aip_hermes.wire import sha256_hex

__all__ = ["bound_to", "outcome_of"]

_KEPT_OF_A_QUESTION: Final = ("pattern_key", "pattern_keys", "choices", "allow_permanent")
_MAX_WORD: Final = 128
_MAX_WORDS: Final = 16


def bound_to(ground: Ground, call: Call, binding: Binding, end: RunEnd) -> Binding | None:
    """Return the binding with the end of its run in it, or the question; None where it has an end already."""
    if binding.terminal:
        return None
    changed = replace(binding, status=end.status, last_event=end.last_event, start_claim=None)
    if end.status == "waiting_for_approval":
        question = _question(end.pending or {})
        return replace(changed, approval_generation=binding.approval_generation + 1, pending_approval=question)
    error = {"message": _said(ground, call, end.provider)} if end.status == "failed" else None
    told = None if end.provider is None else sha256_hex(end.provider)
    return replace(changed, pending_approval=None, output_sha256=told, error=error)


def outcome_of(
    ground: Ground,
    call: Call,
    binding: Binding,
    *,
    pending: Mapping[str, Any] | None = None,
    provider: JsonObject | None = None,
) -> Answer:
    """Return the result that a binding means.

    pending: what the run asks, word for word, and provider: what the endpoint said of its end, where that is known.

    Raises: HermesFailed for a run that failed or whose outcome is unknown.
    """
    output = _output(binding, pending, provider)
    match binding.status:
        case "completed":
            said = (provider or {}).get("output")
            return Answer(output=output, text=said if isinstance(said, str) else None)
        case "cancelled":
            return Answer(output=output, cancelled=True)
        case "waiting_for_approval":
            return Answer(output=output, requires_human=True)
    failure = _failure(ground, call, binding)
    failure.output = output | {"provider": None if provider is None else _masked(ground, call, provider)}
    raise failure


def _masked(ground: Ground, call: Call, provider: JsonObject) -> JsonObject:
    """Return what an endpoint said of a run that failed, by field class: its model may have got anything."""
    masked: JsonObject = redact(provider, secrets=(ground.endpoint.key,))
    error = provider.get("error")
    asked = ground.asked(call, mutation=True)
    if isinstance(error, str):
        return masked | {"error": clean_text(asked, error)}
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        return masked | {"error": {**masked["error"], "message": clean_text(asked, error["message"])}}
    return masked


def _output(binding: Binding, pending: Mapping[str, Any] | None, provider: JsonObject | None) -> JsonObject:
    waits = binding.status == "waiting_for_approval"
    return {
        "endpoint_id": binding.endpoint_id,
        "run_id": binding.run_id,
        "session_id": binding.session_id,
        "source_action_id": binding.action_id,
        "delegation_id": binding.delegation_id,
        "parent_action_id": binding.parent_action_id,
        "status": binding.status,
        "last_event": binding.last_event,
        "pending_approval": (dict(pending) if pending else binding.pending_approval) if waits else None,
        "provider": provider,
    }


def _failure(ground: Ground, call: Call, binding: Binding) -> HermesFailed:
    error = binding.error or {}
    details = ground.details(call, run_id=binding.run_id, source_action_id=binding.action_id)
    endpoint_id = ground.endpoint.id
    if binding.status == "failed" and binding.run_id is None:
        return OperatorStartRejected(str(error.get("message", "")), endpoint_id=endpoint_id, details=details)
    if binding.status == "failed":
        told = {"status": None, "code": None, "message": error.get("message"), "retry_after_ms": None}
        return OperatorRunFailed(
            f"For operator, Hermes endpoint {endpoint_id} ended run {binding.run_id} by saying that it failed. What its"
            " tools did stays done: read what they touched, and use a new Action ID and key for another run.",
            endpoint_id=endpoint_id,
            provider=told,
            details=details,
        )
    return OperatorOutcomeUnknown(
        str(error.get("message") or f"what became of run {binding.run_id} is unknown"),
        endpoint_id=endpoint_id,
        details={**details, "reason": error.get("reason", "unknown")},
        uncertain=True,
    )


def _question(pending: Mapping[str, Any]) -> JsonObject:
    """Return what is kept of a question: what kind of thing is asked, and a hash of its words."""
    kept: JsonObject = {name: pending[name] for name in _KEPT_OF_A_QUESTION if _is_brief(pending.get(name))}
    return kept | ({"sha256": sha256_hex(dict(pending))} if pending else {})


def _is_brief(value: object) -> bool:
    """Whether a member can be a kind or a list of choices; longer ones are words of the question."""
    if isinstance(value, list):
        return len(value) <= _MAX_WORDS and all(isinstance(each, str) and len(each) <= _MAX_WORD for each in value)
    return isinstance(value, bool) or (isinstance(value, str) and len(value) <= _MAX_WORD)


def _said(ground: Ground, call: Call, provider: Mapping[str, Any] | None) -> str | None:
    error = (provider or {}).get("error")
    text = error.get("message") if isinstance(error, Mapping) else error
    return clean_text(ground.asked(call, mutation=True), text) if isinstance(text, str) and text.strip() else None
