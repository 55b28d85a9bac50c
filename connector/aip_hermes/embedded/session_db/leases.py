"""Leases on conversations and on compressions. Plain functions of one transaction.

A lease has one holder until it expires, by the time that all who share the store go by; the holder may take it again
and renew it. Another one takes it over once it
has expired, or where the holder names a process of this machine that is no more. Who lost it is told so by the next
write that says which holder it is from: that write does nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.errors import (
    CompressionSessionBusyError,
    SessionCompressionInProgressError,
    SessionTurnLeaseLostError,
)
from aip_hermes.embedded.session_db.holders import holder_is_gone
from aip_hermes.embedded.session_db.lineage import compression_ancestors
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = [
    "MIN_TTL_S",
    "Kind",
    "check_compression_lock",
    "check_turn_lease",
    "conversation_of",
    "free",
    "holder_of",
    "renew",
    "take",
]

Kind = Literal["turn", "compression"]

MIN_TTL_S: Final = 0.1
_KEPT_S: Final = 86_400.0


def conversation_of(connection: Connection, session_id: str) -> str:
    """Return what a turn lease is keyed by: the oldest row that compressions led here from; also for an unknown id."""
    above = compression_ancestors(connection, session_id)
    return above[-1] if above else scrubbed(session_id)


def take(connection: Connection, kind: Kind, subject: str, holder: str, *, now: float, ttl_s: float) -> bool:
    """Take a lease, or take one's own again; False where somebody else has it."""
    now = connection.time_of_leases(now)
    key = {"kind": kind, "subject": scrubbed(subject)}
    found = connection.execute(QUERIES["fetch_lease"], key)
    elsewhere = connection.engine == "postgres"
    gone = found[0]["holder"] if found and holder_is_gone(found[0]["holder"], elsewhere=elsewhere) else None
    parameters = {**key, "holder": scrubbed(holder), "now": now, "expires_at": now + _bounded(ttl_s), "gone": gone}
    taken = bool(connection.execute(QUERIES["take_lease"], parameters))
    if taken:
        connection.execute(QUERIES["drop_old_leases"], {"before": now - _KEPT_S})
    return taken


def renew(connection: Connection, kind: Kind, subject: str, holder: str, *, now: float, ttl_s: float) -> bool:
    """Extend a lease; False where it is not the holder's any more."""
    key = {"kind": kind, "subject": scrubbed(subject), "holder": scrubbed(holder)}
    expires_at = connection.time_of_leases(now) + _bounded(ttl_s)
    return bool(connection.execute(QUERIES["renew_lease"], {**key, "expires_at": expires_at}))


def free(connection: Connection, kind: Kind, subject: str, holder: str) -> bool:
    """Let go; False where there was nothing of the holder's."""
    key = {"kind": kind, "subject": scrubbed(subject), "holder": scrubbed(holder)}
    return bool(connection.execute(QUERIES["free_lease"], key))


def holder_of(connection: Connection, kind: Kind, subject: str, *, now: float) -> str | None:
    """Return who holds a lease that has not expired; None where nobody does."""
    found = connection.execute(QUERIES["fetch_lease"], {"kind": kind, "subject": scrubbed(subject)})
    return str(found[0]["holder"]) if found and found[0]["expires_at"] > connection.time_of_leases(now) else None


def check_turn_lease(
    connection: Connection, session_id: str, holder: str | None, *, now: float, ttl_s: float = 300.0
) -> None:
    """Let a write pass that names no holder, or the one that has the conversation; its expired lease is renewed.

    Raises SessionTurnLeaseLostError; the write must not happen then.
    """
    if holder is None:
        return
    subject = conversation_of(connection, session_id)
    found = connection.execute(QUERIES["fetch_lease"], {"kind": "turn", "subject": subject})
    if not found or found[0]["holder"] != scrubbed(holder):
        raise SessionTurnLeaseLostError(session_id)
    if found[0]["expires_at"] <= connection.time_of_leases(now):
        renew(connection, "turn", subject, holder, now=now, ttl_s=ttl_s)


def check_compression_lock(connection: Connection, session_id: str, holder: str | None, *, now: float) -> None:
    """Let a compression be published that names no holder where nobody compresses, or the holder of the lock.

    Raises SessionCompressionInProgressError while somebody else has it, CompressionSessionBusyError where it was lost.
    """
    current = holder_of(connection, "compression", session_id, now=now)
    if current == (None if holder is None else scrubbed(holder)):
        return
    if current is not None:
        raise SessionCompressionInProgressError(session_id, f"Session {session_id} is being compressed")
    raise CompressionSessionBusyError(session_id, f"The compression lock of session {session_id} was lost")


def _bounded(ttl_s: float) -> float:
    return max(MIN_TTL_S, ttl_s)
