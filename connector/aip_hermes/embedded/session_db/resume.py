"""Transcripts in the form that a model reads, of one row or with what came before it. Plain functions of one
transaction."""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.cleaning import cleaned, without_replays
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.conversation import conversation, repair_message_sequence, told_rows
from aip_hermes.embedded.session_db.errors import SessionExportTooLargeError, SessionResumeTooLargeError
from aip_hermes.embedded.session_db.lineage import told_lineage
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = [
    "MAX_EXPORT_MESSAGES",
    "MAX_RESUME_MESSAGES",
    "ancestor_prefix",
    "check_export",
    "check_resume",
    "conversation_of",
    "resume_conversations",
    "resume_message_count",
]

MAX_RESUME_MESSAGES: Final = 20_000
"""Live messages of a lineage that a resume loads at most; 0 means any number."""

MAX_EXPORT_MESSAGES: Final = 20_000
"""Live messages that one export holds at most; 0 means any number."""


def conversation_of(
    connection: Connection,
    session_id: str,
    *,
    include_ancestors: bool = False,
    include_inactive: bool = False,
    repair_alternation: bool = False,
    include_row_ids: bool = False,
) -> list[dict[str, Any]]:
    """Return the transcript as a model reads it; with ancestors as a person does. Unknown row: none."""
    if include_ancestors:
        ids = list(told_lineage(connection, session_id))
        found = without_replays(_told(connection, ids, include_inactive, row_ids=include_row_ids))
    else:
        found = _told(connection, [scrubbed(session_id)], include_inactive, row_ids=include_row_ids)
    if repair_alternation:
        repair_message_sequence(found)
    return found


def resume_conversations(
    connection: Connection, session_id: str, *, limit: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what a model reads of this row, repaired, and what a person reads of the whole lineage; with row ids.

    Raises SessionResumeTooLargeError beyond `limit` live messages of the lineage.
    """
    lineage = told_lineage(connection, session_id)
    _check_resume(connection, session_id, lineage, limit=limit)
    own = _told(connection, list(lineage)[:1], False, row_ids=True)
    earlier = _told(connection, list(lineage)[1:], False, row_ids=True)
    display = [*earlier, *(dict(message) for message in own)]
    display.sort(key=lambda message: int(message["_row_id"]))
    repair_message_sequence(own)
    return own, without_replays(display)


def ancestor_prefix(connection: Connection, session_id: str) -> list[dict[str, Any]]:
    """Return the part of the display history that stands in the row's ancestors."""
    ids = list(told_lineage(connection, session_id))[1:]
    return without_replays(_told(connection, ids, False, row_ids=False))


def resume_message_count(connection: Connection, session_id: str) -> int:
    """Return how many live messages the row and the ancestors have that a resume loads."""
    return sum(_live(connection, one) for one in told_lineage(connection, session_id))


def check_resume(connection: Connection, session_id: str, *, limit: int) -> int:
    """Return how many messages a resume loads. Raises SessionResumeTooLargeError beyond `limit`; 0 is no limit."""
    count = resume_message_count(connection, session_id)
    if limit and count > limit:
        raise SessionResumeTooLargeError(session_id, message_count=count, limit=limit)
    return count


def check_export(connection: Connection, session_id: str, *, limit: int) -> int:
    """Return how many messages an export holds. Raises SessionExportTooLargeError beyond `limit`; 0 is no limit."""
    count = _live(connection, session_id)
    if limit and count > limit:
        raise SessionExportTooLargeError(session_id, message_count=count, limit=limit)
    return count


def _check_resume(connection: Connection, session_id: str, lineage: dict[str, int], *, limit: int) -> None:
    # The counters on the rows never fall below the live rows, so that most lineages need no counting.
    if limit and sum(lineage.values()) > limit:
        check_resume(connection, session_id, limit=limit)


def _told(connection: Connection, ids: list[str], include_inactive: bool, *, row_ids: bool) -> list[dict[str, Any]]:
    found: list[tuple[Any, ...]] = []
    for one in ids:
        found += told_rows(connection, one, include_inactive=include_inactive)
    if len(ids) > 1:
        found.sort(key=lambda row: int(row[0]))
    return cleaned(conversation(found, include_row_ids=row_ids))


def _live(connection: Connection, session_id: str) -> int:
    (sums,) = connection.execute(QUERIES["sum_up_transcript"], {"session_id": scrubbed(session_id)})
    return int(sums["messages"])
