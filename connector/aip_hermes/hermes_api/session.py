"""Hermes' session object: what leaves an endpoint of a stored row, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["LINEAGE_MARKERS", "LIST_FIELDS", "SESSION_FIELDS", "SESSION_ROW_FIELDS", "list_entry", "session_object"]

SESSION_ROW_FIELDS: Final = (
    "id",
    "source",
    "user_id",
    "model",
    "title",
    "started_at",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "estimated_cost_usd",
    "actual_cost_usd",
    "api_call_count",
    "parent_session_id",
)
"""The 19 members that are columns of the row; times are Unix seconds with a fraction."""

SESSION_FIELDS: Final = (*SESSION_ROW_FIELDS, "has_system_prompt", "has_model_config")
"""The 21 members of a session object. Always all of them, from create, get, patch, fork and list."""

LIST_FIELDS: Final = ("last_active", "preview", "_lineage_root_id")
"""What a list entry may have besides; the last one only where a compressed root is shown as its continuation."""

LINEAGE_MARKERS: Final = ("_branched_from", "_delegate_from", "_reset_from")
"""Keys of a stored `model_config` that say what kind of child a row is."""


def session_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the 21 members for a stored row.

    The system prompt and the model configuration are only flagged: their text never leaves. A configuration that holds
    nothing but lineage markers is none.
    """
    shown: dict[str, Any] = {name: row[name] for name in SESSION_ROW_FIELDS}
    shown["has_system_prompt"] = bool(row.get("system_prompt") or row.get("system_prompt_hash"))
    shown["has_model_config"] = _configured(row.get("model_config"))
    return shown


def list_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session object with those of LIST_FIELDS that the row of a listing carries."""
    return session_object(row) | {name: row[name] for name in LIST_FIELDS if name in row}


def _configured(model_config: object) -> bool:
    if isinstance(model_config, str):
        try:
            model_config = json.loads(model_config)
        except (ValueError, RecursionError):
            return bool(model_config)
    if isinstance(model_config, Mapping):
        return any(key not in LINEAGE_MARKERS for key in model_config)
    return bool(model_config)
