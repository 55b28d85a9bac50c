"""Sessions as documents: out of one store, into another. Plain functions of one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, transcript
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.import_check import COUNTS, FLAGS, NUMBERS, TEXTS
from aip_hermes.embedded.session_db.lineage import compression_lineage
from aip_hermes.embedded.session_db.model_config import config_text, edge_of
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.resume import check_export
from aip_hermes.hermes_api import clean_title

__all__ = ["Imported", "export", "export_lineage", "exportable", "store"]

_TITLE_SOURCES: Final = ("user", "llm", "derived")


@dataclass(kw_only=True, slots=True)
class Imported:
    """What became of an import. untitled: imported without the title that another session has."""

    imported: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    untitled: list[str] = field(default_factory=list)


def exportable(connection: Connection, *, source: str | None = None) -> list[str]:
    """Return the ids of all sessions, or of those of one source, in the order of their start."""
    wanted = None if source is None else scrubbed(source)
    return [row["id"] for row in connection.execute(QUERIES["sessions_to_export"], {"source": wanted})]


def export(connection: Connection, session_id: str, *, limit: int) -> dict[str, Any] | None:
    """Return the session dictionary with `messages`, the live rows; None for an unknown id.

    Raises SessionExportTooLargeError beyond `limit` messages; 0 is no limit.
    """
    row = sessions.fetch(connection, session_id)
    if row is None:
        return None
    check_export(connection, row["id"], limit=limit)
    return row | {"messages": transcript.messages(connection, row["id"])}


def export_lineage(connection: Connection, session_id: str, *, limit: int) -> dict[str, Any] | None:
    """Return the chain of compressions through a row: the dictionary of its tip, with `lineage_session_ids` from the
    first to the tip, `segments`, one export each, and the `messages` of them all in that order. None: unknown id.
    """
    segments = [export(connection, one, limit=limit) for one in compression_lineage(connection, session_id)]
    found = [segment for segment in segments if segment is not None]
    if not found:
        return None
    return found[-1] | {
        "messages": [message for segment in found for message in segment["messages"]],
        "segments": found,
        "lineage_session_ids": [segment["id"] for segment in found],
    }


def store(connection: Connection, documents: Sequence[Mapping[str, Any]], *, now: float) -> Imported:
    """Insert checked sessions whose ids are free, then link their parents. An id that is there is skipped, not merged.

    A parent that is not there, or that would close a circle, is left out.
    """
    done = Imported()
    for document in documents:
        session_id = scrubbed(document["id"])
        if connection.execute(QUERIES["session_exists"], {"id": session_id}):
            done.skipped.append(session_id)
            continue
        _insert(connection, session_id, document, now=now)
        if not _keep_title(connection, session_id, document):
            done.untitled.append(session_id)
        done.imported.append(session_id)
    new = set(done.imported)
    _link(connection, {one: each for each in documents if (one := scrubbed(each["id"])) in new}, done)
    return done


def _insert(connection: Connection, session_id: str, document: Mapping[str, Any], *, now: float) -> None:
    values: dict[str, Any] = {name: _text(document.get(name)) for name in TEXTS}
    values |= {name: document.get(name) for name in NUMBERS}
    values |= {name: document.get(name) or 0 for name in COUNTS}
    values |= {name: int(document.get(name) or 0) for name in FLAGS}
    values["id"] = session_id
    values["source"] = values["source"] or "unknown"
    values["started_at"] = now if values["started_at"] is None else values["started_at"]
    values["model_config"] = config_text(document.get("model_config"))
    values["edge"] = edge_of(values["model_config"], parent=_text(document.get("parent_session_id")))
    values["system_prompt_hash"] = sessions.kept_prompt(connection, document.get("system_prompt"))
    connection.execute(QUERIES["insert_imported"], values)
    messages = document.get("messages") or []
    if messages:
        transcript.append(connection, session_id, messages, now=now, batch=False, into_compressed=True)
    counters = {name: document.get(name) or 0 for name in ("message_count", "tool_call_count")}
    connection.execute(QUERIES["raise_counters"], counters | {"id": session_id})


def _keep_title(connection: Connection, session_id: str, document: Mapping[str, Any]) -> bool:
    title = clean_title(document.get("title"))
    if title is None:
        return True
    if connection.execute(QUERIES["title_holder"], {"title": title, "id": session_id}):
        return False
    given_by = document.get("title_source")
    source = given_by if given_by in _TITLE_SOURCES else None
    connection.execute(QUERIES["write_title"], {"id": session_id, "title": title, "title_source": source})
    return True


def _link(connection: Connection, new: Mapping[str, Mapping[str, Any]], done: Imported) -> None:
    # Rows that were there before can't have a new one above them, so a circle closes among the new ones or not at all.
    parents: dict[str, str] = {}
    for session_id, document in new.items():
        parent = _text(document.get("parent_session_id"))
        if parent is None:
            continue
        above: str | None = parent
        while above is not None and above != session_id:
            above = parents.get(above)
        if above == session_id or not connection.execute(QUERIES["session_exists"], {"id": parent}):
            done.detached.append(session_id)
            continue
        parents[session_id] = parent
        connection.execute(QUERIES["link_parent"], {"id": session_id, "parent": parent})


def _text(value: str | None) -> str | None:
    return None if value is None else scrubbed(value)
