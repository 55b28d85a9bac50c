"""Operations on session rows: create, enrich, change, fork. Plain functions of one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import decoded_content, preview_of, scrubbed, session_row
from aip_hermes.embedded.session_db.ending import end
from aip_hermes.embedded.session_db.errors import SessionExists, UnknownSession
from aip_hermes.embedded.session_db.model_config import config_text, edge_of, merged_config
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.titles import next_title, sanitized_title, set_title

__all__ = [
    "NewSession",
    "change",
    "create",
    "create_absent",
    "drop_prompt_if_unused",
    "fetch",
    "fetched",
    "fork",
    "ids_meant",
    "kept_prompt",
    "sum_up",
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


_PLAIN: Final = tuple(name for name in NewSession.__slots__ if name not in ("model_config", "system_prompt"))
_ALWAYS: Final = ("id", "source", "model", "started_at")
_REST: Final = tuple(name for name in NewSession.__slots__ if name not in _ALWAYS)
_NOTHING: Final = (None,) * len(_REST)
_rest_of = attrgetter(*_REST)


def fetch(connection: Connection, session_id: str) -> dict[str, Any] | None:
    """Return the session dictionary, or None."""
    rows = connection.execute(QUERIES["fetch_session"], {"id": scrubbed(session_id)})
    return session_row(rows[0]) if rows else None


def ids_meant(connection: Connection, text: str) -> list[str]:
    """Return the id that a text is, else the ids that begin so, two at most; none for no text."""
    part = scrubbed(text)
    if connection.execute(QUERIES["session_exists"], {"id": part}):
        return [part]
    rows = connection.execute(QUERIES["ids_with_prefix"], {"prefix": part}) if part else []
    return [str(row["id"]) for row in rows]


def create(connection: Connection, new: NewSession) -> str:
    """Insert the row, or fill the empty places of an existing one. Raises UnknownSession for an unknown parent."""
    if _rest_of(new) == _NOTHING and _inserted(connection, new):
        return new.id
    values: dict[str, Any] = {name: _clean(getattr(new, name)) for name in _PLAIN}
    if new.parent_session_id is not None:
        _inherit(connection, values, parent_id=str(values["parent_session_id"]))
    known = connection.execute(QUERIES["enriched_places"], {"id": values["id"]})
    stored, parent = (known[0]["model_config"], known[0]["parent_session_id"]) if known else (None, None)
    values["model_config"] = merged_config(stored, config_text(new.model_config))
    values["edge"] = edge_of(values["model_config"], parent=parent or values["parent_session_id"])
    prompted = not known or known[0]["system_prompt_hash"] is None
    values["system_prompt_hash"] = kept_prompt(connection, new.system_prompt) if prompted else None
    connection.execute(QUERIES["insert_session"], values)
    return new.id


def _inserted(connection: Connection, new: NewSession) -> bool:
    """Insert a row that begins with nothing but its source and its model; False where the id is taken."""
    values = {name: _clean(getattr(new, name)) for name in _ALWAYS}
    connection.execute(QUERIES["insert_bare_session"], values)
    return connection.changes > 0


def create_absent(connection: Connection, new: NewSession, *, title: object = None) -> dict[str, Any]:
    """Insert a row whose id must be free, with its title. Raises SessionExists, TitleRefused; then nothing is kept."""
    if connection.execute(QUERIES["session_exists"], {"id": _clean(new.id)}):
        raise SessionExists(new.id)
    create(connection, new)
    if (cleaned := sanitized_title(title)) is not None:
        set_title(connection, new.id, cleaned)
    return fetched(connection, new.id)


def change(connection: Connection, session_id: str, changes: Mapping[str, object], *, at: float) -> dict[str, Any]:
    """Apply title and end reason and return the row. Raises UnknownSession, TitleRefused; then nothing is kept."""
    if "title" in changes and not set_title(connection, session_id, changes["title"]):
        raise UnknownSession(session_id)
    if changes.get("end_reason"):
        end(connection, session_id, reason=str(changes["end_reason"]), at=at)
    return fetched(connection, session_id)


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
    sum_up(connection, child_id, counters=True)
    return fetched(connection, child_id)


def fetched(connection: Connection, session_id: str) -> dict[str, Any]:
    """Return the session dictionary. Raises UnknownSession."""
    row = fetch(connection, session_id)
    if row is None:
        raise UnknownSession(session_id)
    return row


def sum_up(connection: Connection, session_id: str, *, counters: bool) -> None:
    """Derive again what the transcript contributes to its row, after rows left it or came back.

    counters: count the live rows, too; else counters stay unless more rows are live than they tell of. Activity and
    preview are those of the rows that a person may see.
    """
    session_id = scrubbed(session_id)
    (sums,) = connection.execute(QUERIES["sum_up_transcript"], {"session_id": session_id})
    (newest,) = connection.execute(QUERIES["newest_visible_message"], {"session_id": session_id})
    preview: str | None = None
    for row in connection.execute(QUERIES["visible_user_messages"], {"session_id": session_id}):
        if preview := preview_of(decoded_content(row["content"])):
            break
    connection.execute(
        QUERIES["sum_up_session"],
        {
            "id": session_id,
            "newest": newest["newest"],
            "preview": preview or None,
            "counters": int(counters),
            "messages": sums["messages"],
            "tool_calls": sums["tool_calls"],
        },
    )


def kept_prompt(connection: Connection, prompt: str | None) -> str | None:
    """Keep the text of a prompt, once for all rows, and return its hash; None for no prompt."""
    if not prompt:
        return None
    text = scrubbed(prompt)
    digest = hashlib.sha256(text.encode()).hexdigest()
    connection.execute(QUERIES["keep_prompt"], {"hash": digest, "text": text})
    return digest


def drop_prompt_if_unused(connection: Connection, digest: str | None) -> None:
    """Remove a prompt that no row uses any more."""
    if digest is not None:
        connection.execute(QUERIES["drop_prompt_if_unused"], {"hash": digest})


def _inherit(connection: Connection, values: dict[str, Any], *, parent_id: str) -> None:
    parent = fetched(connection, parent_id)
    belongs = _INHERITED_AFTER_COMPRESSION if parent["end_reason"] == "compression" else ()
    for name in (*_INHERITED, *belongs):
        if values.get(name) is None:
            values[name] = parent[name]


def _clean(value: object) -> object:
    return scrubbed(value) if isinstance(value, str) else value
