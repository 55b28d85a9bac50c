"""What a turn has to know of its session before it begins. One read."""

from __future__ import annotations

from dataclasses import dataclass

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import lineage, sessions, transcript

__all__ = ["TurnGround", "ground_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnGround:
    """session_id: the row that holds the conversation now. exists: whether there is such a row. end_reason: why it was
    closed, None where it is open. newest: row id of its newest live message.
    """

    session_id: str
    exists: bool
    end_reason: str | None
    newest: int | None


def ground_of(connection: Connection, session_id: str, *, follows_compression: bool = True) -> TurnGround:
    """Return it for the compression tip of a session, or for the session itself."""
    tip = lineage.compression_tip(connection, session_id) if follows_compression else session_id
    row = sessions.fetch(connection, tip)
    if row is None:
        return TurnGround(session_id=tip, exists=False, end_reason=None, newest=None)
    newest = transcript.messages(connection, tip, limit=1, latest=True)
    return TurnGround(
        session_id=tip, exists=True, end_reason=row["end_reason"], newest=newest[0]["id"] if newest else None
    )
