"""What reads must show before a step counts as done. Pure: nothing is read or sent here.

Source: design D15, D16, D20; Hermes API server §3–§5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.client.hermes_objects import Message, Session
from aip_hermes.client.lifecycle.reading import Active
from aip_hermes.hermes_api import clean_title, stored_text

__all__ = ["StoredTurn", "child_problems", "created_problems", "projection_problems", "reply_of", "stored_turn"]

_API = "api_server"
_PROJECTED = ("source", "model", "title", "started_at", "parent_session_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTurn:
    """Rows of a turn among the active messages. reply: None for a question without a finished reply."""

    question: Message
    reply: Message | None


def created_problems(row: Session, *, title: str | None) -> list[str]:
    """Return what a new row lacks of what was wanted."""
    found = []
    if row.source != _API:
        found.append(f"its source is {row.source!r}")
    if row.title != clean_title(title):
        found.append("it has another title")
    if row.ended_at is not None:
        found.append("it has ended already")
    return found


def projection_problems(row: Session, entry: Session) -> list[str]:
    """Return in which members a list's entry of a session differs from its row. Counts move and are left out."""
    return [f"the list shows another `{name}`" for name in _PROJECTED if getattr(row, name) != getattr(entry, name)]


def child_problems(
    child: Session, *, source: Session, before: Mapping[str, Any], copied: Active | None, title: str | None
) -> list[str]:
    """Return what both sides of a fork lack. before: `{"message_count", "end_reason"}` of the source.

    copied: the child's active messages. title: None where the endpoint numbers one.
    """
    found = []
    if child.parent_session_id != source.id:
        found.append("the child has another parent")
    if child.ended_at is not None:
        found.append("the child has ended already")
    if title is not None and child.title != clean_title(title):
        found.append("the child has another title")
    if source.ended_at is None:
        found.append("the source has not ended")
    elif source.end_reason != (before.get("end_reason") or "branched"):
        found.append(f"the source ended as {source.end_reason!r}")
    wanted = before.get("message_count") or 0
    if copied is None or not copied.own:
        found.append("the child's messages can't be read")
    elif len(copied.messages) < wanted:
        found.append(f"the child has {len(copied.messages)} of {wanted} messages")
    return found


def stored_turn(active: Active, *, message: Any, after: int) -> StoredTurn | None:
    """Return the rows of a turn behind message id `after`, or None.

    A compression gives kept rows new ids, so an equal question of an earlier turn may be behind it too: the last one
    counts. A reply is the turn's last assistant row that asks for no tool.
    """
    wanted = stored_text(message)
    rows = [row for row in active.messages if row.id > after]
    at = max((i for i, row in enumerate(rows) if row.role == "user" and row.content == wanted), default=None)
    if at is None:
        return None
    reply: Message | None = None
    for row in rows[at + 1 :]:
        if row.role == "user":
            break
        if row.role == "assistant" and row.finish_reason is not None and row.finish_reason != "tool_calls":
            reply = row
    return StoredTurn(question=rows[at], reply=reply)


def reply_of(active: Active | None, *, message_id: int) -> Any:
    """Return the content of one message, or None where it is not among the active ones any more."""
    rows = () if active is None else active.messages
    return next((row.content for row in rows if row.id == message_id), None)
