"""How a turn begins: what it has to know of its session, and its question, written only where that still holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import ending, leases, lineage, sessions, transcript
from aip_hermes.embedded.session_db.errors import ConversationMoved, ConversationTaken
from aip_hermes.embedded.session_db.sessions import NewSession

__all__ = ["TurnGround", "begin", "ground_of"]

_REOPENED = frozenset({"agent_close", "compression"})


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnGround:
    """session_id: the row that holds the conversation now. exists: whether there is such a row. end_reason: why it was
    closed, None where it is open. newest: row id of its newest live message. messages: how many the row counts.
    """

    session_id: str
    exists: bool
    end_reason: str | None
    newest: int | None
    messages: int = 0


def ground_of(connection: Connection, session_id: str, *, follows_compression: bool = True) -> TurnGround:
    """Return it for the compression tip of a session, or for the session itself."""
    tip = lineage.compression_tip(connection, session_id) if follows_compression else session_id
    row = sessions.fetch(connection, tip)
    if row is None:
        return TurnGround(session_id=tip, exists=False, end_reason=None, newest=None)
    newest = transcript.messages(connection, tip, limit=1, latest=True)
    return TurnGround(
        session_id=tip,
        exists=True,
        end_reason=row["end_reason"],
        newest=newest[0]["id"] if newest else None,
        messages=row["message_count"],
    )


def begin(
    connection: Connection,
    ground: TurnGround,
    question: Mapping[str, Any],
    *,
    holder: str | None,
    new: NewSession | None,
    now: float,
    ttl_s: float,
    follows_compression: bool,
) -> int:
    """Take the turn lease and append the question to the row that `ground` describes; returns its row id.

    holder: None takes no lease, and then nothing is compared. new: the row to make where there is none.
    A row that an agent closed is opened again, and so is one that a compression ended without a child, as the
    conversation would have nowhere to go on.
    Raises ConversationTaken, ConversationMoved, and what append raises; then nothing is kept.
    """
    session_id = ground.session_id
    if holder is not None:
        subject = leases.conversation_of(connection, session_id)
        if not leases.take(connection, "turn", subject, holder, now=now, ttl_s=ttl_s):
            raise ConversationTaken
        if ground_of(connection, session_id, follows_compression=follows_compression) != ground:
            raise ConversationMoved
    if new is not None and not ground.exists:
        sessions.create(connection, new)
    if follows_compression and ground.end_reason in _REOPENED:
        ending.reopen(connection, session_id)
    row = {"role": "user", **question}
    (row_id,) = transcript.append(
        connection, session_id, [row], now=now, batch=False, into_compressed=not follows_compression
    )
    return row_id
