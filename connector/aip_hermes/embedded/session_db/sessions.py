"""Operations on session rows: create, enrich, end, title, fork. Plain functions of one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed, session_row
from aip_hermes.embedded.session_db.errors import SessionExists, TitleRefused, UnknownSession
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.hermes_api import clean_title, lineage_base, next_lineage_title, title_problem

__all__ = [
    "NewSession",
    "change",
    "create",
    "create_absent",
    "end",
    "fetch",
    "fork",
    "last_active",
    "next_title",
    "sanitized_title",
    "set_title",
]

_INHERITED = ("cwd", "git_repo_root", "git_branch", "profile_name")
_INHERITED_AFTER_COMPRESSION = (
    "user_id",
    "session_key",
    "chat_id",
    "chat_type",
    "thread_id",
    "display_name",
    "origin_json",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSession:
    """What a row begins with. `model_config` is an object, or the JSON text that another row holds."""

    id: str
    source: str
    started_at: float
    model: str | None = None
    model_config: Mapping[str, Any] | str | None = None
    system_prompt: str | None = None
    user_id: str | None = None
    session_key: str | None = None
    chat_id: str | None = None
    chat_type: str | None = None
    thread_id: str | None = None
    parent_session_id: str | None = None
    cwd: str | None = None
    profile_name: str | None = None
    git_repo_root: str | None = None
    git_branch: str | None = None
    origin_json: str | None = None
    display_name: str | None = None


def fetch(connection: Connection, session_id: str) -> dict[str, Any] | None:
    """Return the session dictionary, or None."""
    rows = connection.execute(QUERIES["fetch_session"], {"id": scrubbed(session_id)})
    return session_row(rows[0]) if rows else None


def create(connection: Connection, new: NewSession) -> str:
    """Insert the row, or fill the empty places of an existing one. Raises UnknownSession for an unknown parent."""
    values: dict[str, Any] = {
        name: _clean(getattr(new, name))
        for name in NewSession.__slots__
        if name not in ("model_config", "system_prompt")
    }
    if new.parent_session_id is not None:
        _inherit(connection, values, parent_id=str(values["parent_session_id"]))
    known = connection.execute(QUERIES["fetch_session"], {"id": values["id"]})
    values["model_config"] = _merged_config(known[0]["model_config"] if known else None, _config_text(new.model_config))
    values["edge"] = _edge(values["model_config"])
    values["system_prompt_hash"] = _kept_prompt(connection, new.system_prompt)
    connection.execute(QUERIES["insert_session"], values)
    if known:
        connection.execute(QUERIES["drop_unused_prompts"])
    return new.id


def create_absent(connection: Connection, new: NewSession, *, title: object = None) -> dict[str, Any]:
    """Insert a row whose id must be free, with its title. Raises SessionExists, TitleRefused; then nothing is kept."""
    if connection.execute(QUERIES["session_exists"], {"id": _clean(new.id)}):
        raise SessionExists(new.id)
    create(connection, new)
    if (cleaned := sanitized_title(title)) is not None:
        set_title(connection, new.id, cleaned)
    return _fetched(connection, new.id)


def end(connection: Connection, session_id: str, *, reason: str, at: float) -> None:
    """Close the row unless it is closed; the first reason wins. An unknown id is nothing to do."""
    connection.execute(
        QUERIES["end_session"], {"id": scrubbed(session_id), "end_reason": scrubbed(reason), "ended_at": at}
    )


def sanitized_title(title: object) -> str | None:
    """Return the cleaned title. Raises TitleRefused when it is too long."""
    cleaned = clean_title(title)
    if problem := title_problem(cleaned):
        raise TitleRefused(problem)
    return cleaned


def set_title(connection: Connection, session_id: str, title: object) -> bool:
    """Write a person's title; an empty one clears. False for an unknown id.

    Raises TitleRefused for one too long or held by another row; a compressed ancestor hands its title over instead.
    """
    session_id = scrubbed(session_id)
    cleaned = sanitized_title(title)
    if not connection.execute(QUERIES["session_exists"], {"id": session_id}):
        return False
    if cleaned is not None:
        for holder in connection.execute(QUERIES["title_holder"], {"title": cleaned, "id": session_id}):
            ancestors = {row["id"] for row in connection.execute(QUERIES["compression_ancestors"], {"id": session_id})}
            if holder["id"] not in ancestors:
                raise TitleRefused(
                    f"Title '{cleaned}' is already in use by session {holder['id']}", holder=holder["id"]
                )
            connection.execute(QUERIES["write_title"], {"id": holder["id"], "title": None, "title_source": None})
    source = None if cleaned is None else "user"
    connection.execute(QUERIES["write_title"], {"id": session_id, "title": cleaned, "title_source": source})
    return True


def change(connection: Connection, session_id: str, changes: Mapping[str, object], *, at: float) -> dict[str, Any]:
    """Apply title and end reason and return the row. Raises UnknownSession, TitleRefused; then nothing is kept."""
    if "title" in changes and not set_title(connection, session_id, changes["title"]):
        raise UnknownSession(session_id)
    if changes.get("end_reason"):
        end(connection, session_id, reason=str(changes["end_reason"]), at=at)
    return _fetched(connection, session_id)


def next_title(connection: Connection, title: str) -> str:
    """Return the next free title of the lineage that `title` belongs to."""
    rows = connection.execute(QUERIES["lineage_titles"], {"base": lineage_base(title)})
    return next_lineage_title(title, (row["title"] for row in rows))


def fork(
    connection: Connection,
    source_id: str,
    *,
    child_id: str,
    title: object,
    automatic_title: bool,
    at: float,
    source: str,
    marked: bool,
) -> dict[str, Any]:
    """End the source as `branched`, make the child with the live messages and its title; all or nothing.

    Raises UnknownSession (source), SessionExists (child), TitleRefused.
    """
    parent = fetch(connection, source_id)
    if parent is None:
        raise UnknownSession(source_id)
    new = NewSession(
        id=child_id,
        source=source,
        started_at=at,
        model=parent["model"],
        model_config={"_branched_from": parent["id"]} if marked else None,
        system_prompt=parent["system_prompt"],
        parent_session_id=parent["id"],
    )
    wanted = next_title(connection, parent["title"] or "fork") if automatic_title else title
    create_absent(connection, new, title=wanted)
    end(connection, parent["id"], reason="branched", at=at)
    child_id = scrubbed(child_id)
    connection.execute(QUERIES["copy_messages"], {"source": parent["id"], "target": child_id})
    totals = connection.execute(QUERIES["sum_up_transcript"], {"session_id": child_id})[0]
    if totals["messages"]:
        preview = connection.execute(QUERIES["fetch_session"], {"id": parent["id"]})[0]["preview"]
        connection.execute(QUERIES["add_to_transcript"], {**totals, "id": child_id, "preview": preview})
    return _fetched(connection, child_id)


def last_active(row: Mapping[str, Any]) -> float:
    """Return the time of the last activity of a stored row: noted activity or newest message, else the start."""
    times = [row[name] for name in ("last_activity_at", "newest_message_at") if row[name] is not None]
    return float(max(times) if times else row["started_at"])


def _fetched(connection: Connection, session_id: str) -> dict[str, Any]:
    row = fetch(connection, session_id)
    if row is None:
        raise UnknownSession(session_id)
    return row


def _inherit(connection: Connection, values: dict[str, Any], *, parent_id: str) -> None:
    parent = fetch(connection, parent_id)
    if parent is None:
        raise UnknownSession(parent_id)
    belongs = _INHERITED_AFTER_COMPRESSION if parent["end_reason"] == "compression" else ()
    for name in (*_INHERITED, *belongs):
        if values.get(name) is None:
            values[name] = parent[name]


def _kept_prompt(connection: Connection, prompt: str | None) -> str | None:
    if not prompt:
        return None
    text = scrubbed(prompt)
    digest = hashlib.sha256(text.encode()).hexdigest()
    connection.execute(QUERIES["keep_prompt"], {"hash": digest, "text": text})
    return digest


def _config_text(config: Mapping[str, Any] | str | None) -> str | None:
    if not config:
        return None
    return config if isinstance(config, str) else json.dumps(config)


def _merged_config(stored: str | None, given: str | None) -> str | None:
    if stored is None or given is None:
        return stored or given
    kept = _config(stored)
    if set(kept) == {"_reset_from"}:
        return json.dumps(_config(given) | kept)
    return stored


def _edge(config: str | None) -> str | None:
    # A branch of a subagent's row is a person's: it must not go with the subagent.
    markers = _config(config)
    for marker, edge in (("_branched_from", "branch"), ("_delegate_from", "delegate"), ("_reset_from", "reset")):
        if markers.get(marker):
            return edge
    return None


def _config(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _clean(value: object) -> object:
    return scrubbed(value) if isinstance(value, str) else value
