"""Closing a row and opening it again. Plain functions of one transaction."""

from __future__ import annotations

from typing import Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.model_config import patched_config
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["RESET_REASONS", "end", "reopen"]

RESET_REASONS: Final = (
    "session_reset",
    "session_switch",
    "idle",
    "daily",
    "suspended",
    "resume_pending_expired",
)
"""End reasons after which a conversation of the same session key begins anew."""


def end(connection: Connection, session_id: str, *, reason: str, at: float) -> None:
    """Close the row unless it is closed; the first reason wins. An unknown id is nothing to do."""
    connection.execute(
        QUERIES["end_session"], {"id": scrubbed(session_id), "end_reason": scrubbed(reason), "ended_at": at}
    )


def reopen(connection: Connection, session_id: str) -> None:
    """Clear end and reason. Children whose kind only the reason told are marked first, so that they stay what they are.

    An unknown or open row is nothing to do.
    """
    session_id = scrubbed(session_id)
    for edge, marker, query in (
        ("reset", "_reset_from", "unmarked_resets"),
        ("branch", "_branched_from", "unmarked_branches"),
    ):
        for child in connection.execute(QUERIES[query], {"id": session_id}):
            if edge == "reset" and child["end_reason"] not in RESET_REASONS:
                continue
            marked = patched_config(child["model_config"], {marker: session_id})
            connection.execute(QUERIES["write_config"], {"id": child["id"], "model_config": marked, "edge": edge})
    connection.execute(QUERIES["reopen_session"], {"id": session_id})
