"""What AIAgent is made from: which arguments it acts on, which model they mean, and why others are refused."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aip_hermes.embedded.agent.models import Model
from aip_hermes.embedded.agent.offline import OfflineModel
from aip_hermes.embedded.agent.openai_model import OpenAIModel
from aip_hermes.embedded.session_db.leases import MIN_TTL_S
from aip_hermes.ports import Clock
from aip_hermes.secret import Secret

__all__ = ["check_leases", "check_message", "check_store", "checked_history", "model_of", "refuse"]

_OFFLINE: Final = "offline"
_SPOKEN: Final = frozenset({None, "", "custom", "openai", "openai-compatible", "openrouter", "offline"})
_NEEDED: Final = (
    "create_session", "append_message", "get_session", "end_session", "close", "begin_turn", "record_reply",
    "get_messages_as_conversation", "get_turn_ground", "try_acquire_session_turn_lease",
    "acquire_session_turn_lease", "refresh_session_turn_lease", "release_session_turn_lease",
    "try_acquire_compression_lock", "release_compression_lock", "archive_and_compact", "publish_compression_child",
    "record_compression_failure", "record_auxiliary_usage",
)  # fmt: skip

_REASONS: Final[Mapping[str, str]] = {
    "api_mode": "it speaks chat completions only",
    "fallback_model": "it asks one model; give another agent the other one",
    "credential_pool": "it uses one api_key",
    "reasoning_config": "it sends no reasoning settings",
    "max_tokens": "it sets no limit on a reply",
    "request_overrides": "it sends the request that it documents",
    "service_tier": "it sends no service tier",
    "providers_allowed": "it routes nothing",
    "providers_ignored": "it routes nothing",
    "providers_order": "it routes nothing",
    "provider_sort": "it routes nothing",
    "skip_context_files": "it reads no context files",
    "skip_memory": "it has no memory besides session_search",
    "save_trajectories": "it writes no trajectories; export the session instead",
    "prefill_messages": "give them as conversation_history",
    "checkpoints_enabled": "it changes no files",
    "clarify_callback": "it asks nothing but through approver=",
    "tool_progress_callback": "it tells text only, through stream_callback of a turn",
    "thinking_callback": "it tells text only, through stream_callback of a turn",
    "reasoning_callback": "it tells text only, through stream_callback of a turn",
    "step_callback": "it tells text only, through stream_callback of a turn",
    "stream_delta_callback": "give stream_callback to the turn",
    "parent_session_id": "make the row with SessionDB.create_session first",
    "acp_command": "it starts no other program",
    "command": "it starts no other program",
    "iteration_budget": "max_iterations is its only budget",
    "tool_delay": "it does not wait between tools",
    "verbose_logging": "set the log level of your program",
    "quiet_mode": "it prints nothing anyway",
}


_SO_ANYWAY: Final[Mapping[str, bool]] = {
    "checkpoints_enabled": False,
    "quiet_mode": True,
    "save_trajectories": False,
    "skip_context_files": True,
    "skip_memory": True,
    "verbose_logging": False,
}
"""What may be asked for because nothing else ever happens."""


def refuse(others: Mapping[str, object]) -> None:
    """Raise TypeError for arguments that the agent does not act on, each with the reason.

    One that asks for what is so anyway is none of them, and neither is a known one that is None.
    """
    told = [
        f"{name} ({_REASONS.get(name, 'there is no such argument')})"
        for name, value in sorted(others.items())
        if name not in _REASONS or (value is not None and value is not _SO_ANYWAY.get(name))
    ]
    if told:
        raise TypeError(f"AIAgent does not act on: {'; '.join(told)}")


def model_of(
    model: str | Model, *, base_url: str | None, api_key: str | Secret | None, provider: str | None, clock: Clock
) -> tuple[Model, bool]:
    """Return the model and whether it is the agent's own, to be closed with it.

    Raises ValueError for a name without an address, an address beside a model object, and a provider that speaks
    something else.
    """
    if not isinstance(model, str):
        if base_url or api_key or provider:
            raise ValueError("a model object brings its own address and key; leave base_url, api_key and provider out")
        return model, False
    if provider not in _SPOKEN:
        raise ValueError(f"provider {provider} is not known; give the base_url= of its OpenAI-compatible endpoint")
    if _OFFLINE in (model, provider):
        return OfflineModel(), True
    if not base_url or not model:
        raise ValueError('give model= and the base_url= of an OpenAI-compatible endpoint, or model="offline"')
    key = Secret(api_key) if isinstance(api_key, str) and api_key else api_key
    return OpenAIModel(base_url=base_url, model=model, key=key or None, clock=clock), True


def check_leases(lease_s: float, wait_s: float) -> None:
    """Raise ValueError for a time that no lease can last, and for one that nobody can wait."""
    if not MIN_TTL_S <= lease_s < math.inf:
        raise ValueError(f"turn_lease_seconds is at least {MIN_TTL_S}")
    if not wait_s >= 0:
        raise ValueError("turn_lease_wait_seconds is not negative")


def check_message(message: object) -> None:
    """Raise TypeError for what is neither a text nor a list of content parts, ValueError for an empty list."""
    if isinstance(message, str):
        return
    if not isinstance(message, list) or not all(isinstance(part, str | Mapping) for part in message):
        raise TypeError("user_message is a text, or a list of content parts such as {'type': 'text', 'text': '…'}")
    if not message:
        raise ValueError("user_message is a list without content parts")


def checked_history(history: Iterable[object]) -> list[Mapping[str, Any]]:
    """Return the messages. Raises TypeError, naming the first that is none."""
    if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
        raise TypeError("conversation_history is a list of messages such as {'role': 'user', 'content': '…'}")
    messages: list[Mapping[str, Any]] = []
    for at, message in enumerate(history):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TypeError(f"conversation_history[{at}] is no message such as {{'role': 'user', 'content': '…'}}")
        messages.append(message)
    return messages


def check_store(store: Any) -> None:
    """Raise TypeError for an object that is no session store; says what it lacks."""
    missing = [name for name in _NEEDED if not inspect.iscoroutinefunction(getattr(store, name, None))]
    if missing:
        raise TypeError(f"session_db= takes a SessionDB; {type(store).__name__} lacks the coroutine {missing[0]}()")
