"""Removing rows with all that hangs on them. Plain functions of one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import lineage
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["delete", "delete_empty", "delete_ghosts", "delete_if_empty", "empty", "remove", "targets"]


def targets(connection: Connection, session_id: str) -> list[str]:
    """Return what a delete would remove: the row and then its subagents' rows by id; nothing for an unknown id."""
    session_id = scrubbed(session_id)
    if not connection.execute(QUERIES["session_exists"], {"id": session_id}):
        return []
    return [session_id, *(row["id"] for row in connection.execute(QUERIES["delegates_below"], {"id": session_id}))]


def delete(connection: Connection, session_id: str, *, expected: Collection[str] | None = None) -> list[str]:
    """Remove the row and its subagents' rows; every other child stays without a parent. Returns the removed ids.

    expected: what the caller was shown; where that has changed meanwhile, nothing is removed.
    """
    doomed = targets(connection, session_id)
    if expected is not None and {scrubbed(one) for one in expected} != set(doomed):
        return []
    return remove(connection, doomed)


def delete_if_empty(connection: Connection, session_id: str) -> list[str]:
    """Remove the row where it has no title, no message and no child. Returns the removed ids."""
    return remove(connection, _ids(connection, "empty_session", id=scrubbed(session_id)))


def empty(connection: Connection) -> list[str]:
    """Return the ended rows without title, message and child that are neither pinned nor archived."""
    return _ids(connection, "ended_empty_sessions")


def delete_empty(connection: Connection) -> list[str]:
    """Remove the rows that `empty` means. Returns their ids."""
    return remove(connection, empty(connection))


def delete_ghosts(connection: Connection, *, before: float) -> list[str]:
    """Remove empty, ended rows that a terminal began before a moment. Returns their ids."""
    return remove(connection, _ids(connection, "ghost_sessions", before=before))


def remove(connection: Connection, ids: Iterable[str]) -> list[str]:
    """Remove these rows, their messages, usage and prompts; every child that is not among them stays as an orphan.

    Unknown ids are nothing to do. Returns the ids of the rows that were there. Any number will do.
    """
    connection.execute(QUERIES["make_doomed"])
    connection.execute(QUERIES["forget_doomed"])
    for one in ids:
        connection.execute(QUERIES["doom"], {"id": scrubbed(one)})
    removed = _ids(connection, "doomed_ids")
    if removed:
        _hand_leases_on(connection, set(removed))
        prompts = connection.execute(QUERIES["prompts_of_doomed"])
        for name in ("orphan_children_of_doomed", "delete_messages_of_doomed", "delete_doomed"):
            connection.execute(QUERIES[name])
        for prompt in prompts:
            connection.execute(QUERIES["drop_prompt_if_unused"], {"hash": prompt["hash"]})
        connection.execute(QUERIES["forget_doomed"])
    return removed


def _hand_leases_on(connection: Connection, doomed: set[str]) -> None:
    """Let turns that run keep their conversations: a lease belongs to the first segment, which is another one for the
    tip of a chain that a removal cuts.
    """
    for held in connection.execute(QUERIES["turn_leases"]):
        chain = lineage.compression_lineage(connection, held["subject"])
        if doomed.isdisjoint(chain) or chain[-1] in doomed:
            continue
        first = next(at for at in range(len(chain) - 1, -1, -1) if chain[at] in doomed) + 1
        connection.execute(QUERIES["move_turn_lease"], {"subject": held["subject"], "to": chain[first]})


def _ids(connection: Connection, query: str, **parameters: object) -> list[str]:
    return [str(row["id"]) for row in connection.execute(QUERIES[query], parameters)]
