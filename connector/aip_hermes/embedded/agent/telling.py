"""What a turn of AIAgent answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.embedded.agent.keeping import Keeper
from aip_hermes.embedded.agent.models import ModelFailed

__all__ = ["Identity", "TurnFailed", "answered", "failed", "failure_text"]


class TurnFailed(Exception):
    """A turn gave no answer; `result` is what run_conversation returns for it."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        super().__init__(str(result["error"]))
        self.result = dict(result)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Who answers: as every result says."""

    model: str
    provider: str | None
    base_url: str | None


def answered(keeper: Keeper, identity: Identity, *, text: str, finish_reason: str) -> dict[str, Any]:
    """Return the result of a turn that came to its end."""
    return _result(
        keeper,
        identity,
        final_response=text,
        completed=True,
        partial=finish_reason == "length",
        turn_exit_reason=f"text_response(finish_reason={finish_reason})",
    )


def failed(keeper: Keeper, identity: Identity, *, reason: str, error: str) -> dict[str, Any]:
    """Return the result of a turn without an answer."""
    return _result(keeper, identity, final_response=error, completed=False, partial=False, turn_exit_reason=reason) | {
        "failed": True,
        "error": error,
    }


def failure_text(failure: ModelFailed) -> str:
    """Return what stands for the answer of a model that failed: the status and the endpoint's own words, if any."""
    if failure.status is None:
        return f"{failure}: {failure.reason}" if failure.reason else str(failure)
    return f"HTTP {failure.status}: {failure.reason or failure}"


def _result(
    keeper: Keeper, identity: Identity, *, final_response: str, completed: bool, partial: bool, turn_exit_reason: str
) -> dict[str, Any]:
    usage = keeper.usage
    told: dict[str, Any] = {
        "final_response": final_response,
        "last_reasoning": None,
        "messages": [_shown(message) for message in keeper.messages],
        "api_calls": keeper.calls,
        "completed": completed,
        "turn_exit_reason": turn_exit_reason,
        "failed": False,
        "partial": partial,
        "interrupted": False,
        # Nothing rewrites an answer or shows a part of it beforehand, and no price list is known here.
        "response_transformed": False,
        "response_previewed": False,
        "model": identity.model,
        "provider": identity.provider,
        "base_url": identity.base_url,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "last_prompt_tokens": keeper.last_prompt_tokens,
        "estimated_cost_usd": None,
        "cost_status": "unknown",
        "cost_source": "none",
        "service_tier": None,
        "session_id": keeper.session_id,
        "persisted": keeper.persisted,
    }
    if keeper.db is not None and keeper.cause is not None:
        told["persist_error"] = keeper.cause
    return told


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "api_content"}
