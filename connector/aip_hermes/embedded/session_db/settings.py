"""Single values of a row: configuration, prompt, place, activity, flags. Plain functions of one transaction.

An unknown id is nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.lineage import compression_lineage
from aip_hermes.embedded.session_db.model_config import config_text, edge_of, patched_config
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.sessions import drop_prompt_if_unused, fetch, kept_prompt

__all__ = [
    "PROVENANCES",
    "Flag",
    "activity_of",
    "note_activity",
    "patch_config",
    "runtime_lock",
    "set_flag",
    "write_config_text",
    "write_model",
    "write_prompt",
]

Flag = Literal["archived", "pinned", "hidden", "read"]

PROVENANCES: Final = (
    "unknown",
    "agent.compression",
    "agent.compression_timeout",
    "agent.compression_cooldown",
)
"""Who may say what a session is busy with."""

_UNKNOWN: Final = PROVENANCES[0]
_DESCRIPTION_CHARS: Final = 120
_LOCK: Final = "browser_model_lock"


def patch_config(connection: Connection, session_id: str, patch: Mapping[str, Any]) -> None:
    """Set members of the configuration, None removes one."""
    row = fetch(connection, session_id)
    if row is None:
        return
    _write_config(connection, row, patched_config(row["model_config"], patch))


def write_config_text(connection: Connection, session_id: str, text: str | None, *, model: str | None) -> None:
    """Replace the configuration by a JSON text; the model stays where none is given."""
    row = fetch(connection, session_id)
    if row is None:
        return
    _write_config(connection, row, config_text(text))
    connection.execute(QUERIES["fill_model"], {"id": row["id"], "model": None if model is None else scrubbed(model)})


def write_model(connection: Connection, session_id: str, model: str) -> None:
    """Change the model; the lock and the stored prompt of the one before go."""
    row = fetch(connection, session_id)
    if row is None:
        return
    patch_config(connection, session_id, {_LOCK: None})
    connection.execute(QUERIES["write_model"], {"id": row["id"], "model": scrubbed(model)})
    drop_prompt_if_unused(connection, row["system_prompt_hash"])


def write_prompt(connection: Connection, session_id: str, prompt: str | None) -> None:
    """Change the system prompt, None removes it; a prompt that no row uses any more goes."""
    row = fetch(connection, session_id)
    if row is None:
        return
    digest = kept_prompt(connection, prompt)
    connection.execute(QUERIES["write_prompt"], {"id": row["id"], "hash": digest})
    if row["system_prompt_hash"] != digest:
        drop_prompt_if_unused(connection, row["system_prompt_hash"])


def note_activity(
    connection: Connection, session_id: str, *, at: float, description: str | None, provenance: str | None
) -> None:
    """Note a sign of life, never earlier than the last one. A provenance that nobody knows is `unknown`."""
    if provenance is not None and provenance not in PROVENANCES:
        provenance = _UNKNOWN
    label = None if description is None else _short(" ".join(scrubbed(description).split()))
    asked = {"id": scrubbed(session_id), "at": at, "description": label, "provenance": provenance}
    connection.execute(QUERIES["note_activity"], asked)


def activity_of(row: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """Return what a row says of its last sign of life, under each name that callers know it by."""
    at, description = row["last_activity_at"], row["last_activity_description"] or ""
    provenance = row["last_activity_provenance"] or _UNKNOWN
    return {
        "last_activity_at": at,
        "last_activity_description": description,
        "last_activity_provenance": provenance,
        "seconds_since_activity": None if at is None else max(0.0, now - at),
        "last_activity_ts": at,
        "last_activity_desc": description,
        "description": description,
        "provenance": provenance,
    }


def _short(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_CHARS else text[: _DESCRIPTION_CHARS - 1] + "…"


def set_flag(connection: Connection, session_id: str, flag: Flag, value: bool, *, now: float) -> bool:
    """Set a flag of a conversation on each row that compressions cut it into; False for an unknown id."""
    lineage = compression_lineage(connection, session_id)
    asked: dict[str, object] = {"flag": int(value)}
    if flag == "read":
        asked["now"] = now
    for one in lineage:
        connection.execute(QUERIES[f"write_{flag}"], asked | {"id": one})
    return bool(lineage)


def _write_config(connection: Connection, row: Mapping[str, Any], text: str | None) -> None:
    edge = edge_of(text, parent=row["parent_session_id"])
    connection.execute(QUERIES["write_config"], {"id": row["id"], "model_config": text, "edge": edge})


def runtime_lock(
    *,
    model: str | None,
    provider: str | None,
    model_options: Mapping[str, Any] | None,
    route_source: str | None,
    confirmed: bool,
    now: float,
) -> dict[str, Any]:
    """Return the patch that locks a session to a route."""
    lock: dict[str, Any] = {
        "model": model,
        "provider": provider,
        "model_options": None if model_options is None else json.loads(json.dumps(model_options)),
        "route_source": route_source,
        "confirmed": confirmed,
        "updated_at": now,
    }
    return {_LOCK: {key: value for key, value in lock.items() if value is not None}}
