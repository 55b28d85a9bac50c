"""Methods on what a row remembers of its compressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import leases
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["CompressionNoteMethods"]

_UNTIL: Final = "compression_failure_cooldown_until"
_ERROR: Final = "compression_failure_error"
_ERROR_CHARS: Final = 500


class CompressionNoteMethods(StoreFile):
    """Cool-downs, streaks, and compressions that were broken off. An unknown id is nothing to do."""

    async def get_active_message_watermark(self, session_id: str) -> int:
        """Return the newest live row of a transcript, 0 where there is none: what comes later was not summarised."""
        asked = {"session_id": scrubbed(session_id)}
        (row,) = await self.read(lambda c: c.execute(QUERIES["newest_live_row"], asked))
        return int(row["id"] or 0)

    async def record_compression_failure(self, session_id: str, error: str, *, cooldown_seconds: float = 300.0) -> None:
        """Note a failed summary: its error (500 characters, no transcript text, please), one more in the streak, and
        the time before which no compression should start by itself.
        """
        asked = {"id": scrubbed(session_id), "until": self._now() + cooldown_seconds, "error": _short(error)}
        await self.write(lambda c: c.execute(QUERIES["note_compression_failure"], asked))

    async def record_compression_failure_cooldown(
        self, session_id: str, cooldown_until: float, error: str | None = None
    ) -> None:
        """Note that nothing should be compressed before a moment (Unix seconds), and why; the streak stays."""
        await self.write(lambda c: _write_cooldown(c, session_id, cooldown_until, error))

    async def clear_compression_failure_cooldown(self, session_id: str) -> None:
        """Forget the cool-down."""
        await self.write(lambda c: _write_cooldown(c, session_id, None, None))

    async def get_compression_failure_cooldown(self, session_id: str) -> dict[str, Any] | None:
        """Return `{cooldown_until, remaining_seconds, error}` of a cool-down that has not passed, else None."""
        notes, now = await self._notes(session_id), self._now()
        if notes is None or notes[_UNTIL] is None or notes[_UNTIL] <= now:
            return None
        return {"cooldown_until": notes[_UNTIL], "remaining_seconds": notes[_UNTIL] - now, "error": notes[_ERROR]}

    async def get_compression_failure_cooldown_row(self, session_id: str) -> dict[str, Any]:
        """Return `{session_exists, cooldown_until, error}` as stored, to be restored when something goes wrong."""
        notes = await self._notes(session_id)
        if notes is None:
            return {"session_exists": False, "cooldown_until": None, "error": None}
        return {"session_exists": True, "cooldown_until": notes[_UNTIL], "error": notes[_ERROR]}

    async def restore_compression_failure_cooldown_row(self, session_id: str, snapshot: Mapping[str, Any]) -> None:
        """Write a cool-down back. Raises RuntimeError where the session has come or gone since the snapshot."""

        def restore(connection: Connection) -> None:
            exists = bool(connection.execute(QUERIES["session_exists"], {"id": scrubbed(session_id)}))
            if exists != snapshot["session_exists"]:
                change = "appeared" if exists else "is gone"
                raise RuntimeError(f"the compression cool-down of session {session_id} can't go back: it {change}")
            _write_cooldown(connection, session_id, snapshot["cooldown_until"], snapshot["error"])

        await self.write(restore)

    async def get_compression_fallback_streak(self, session_id: str) -> int:
        """Return how often in a row a compression did without its model or failed."""
        notes = await self._notes(session_id)
        return 0 if notes is None else int(notes["compression_fallback_streak"])

    async def set_compression_fallback_streak(self, session_id: str, streak: int) -> None:
        """Write how often in a row a compression did without its model or failed."""
        asked = {"id": scrubbed(session_id), "count": max(0, streak)}
        await self.write(lambda c: c.execute(QUERIES["write_compression_fallback_streak"], asked))

    async def get_compression_ineffective_count(self, session_id: str) -> int:
        """Return how often in a row a compression saved little."""
        notes = await self._notes(session_id)
        return 0 if notes is None else int(notes["compression_ineffective_count"])

    async def set_compression_ineffective_count(self, session_id: str, count: int) -> None:
        """Write how often in a row a compression saved little."""
        asked = {"id": scrubbed(session_id), "count": max(0, count)}
        await self.write(lambda c: c.execute(QUERIES["write_compression_ineffective_count"], asked))

    async def finalize_orphaned_compression_sessions(self) -> int:
        """End, as `orphaned_compression`, continuations with messages in which nobody ever worked; returns how many."""
        now = self._now()

        def finalize(connection: Connection) -> int:
            connection.execute(QUERIES["end_orphaned_compressions"], {"now": now})
            return connection.changes

        return await self.write(finalize)

    async def reopen_orphaned_compression_session(self, session_id: str) -> bool:
        """Open a row again that a compression ended without a continuation, unless one is being made; tells if it was.

        A branch or a subagent's row is no continuation.
        """
        now = self._now()

        def reopen(connection: Connection) -> bool:
            if leases.holder_of(connection, "compression", session_id, now=now) is not None:
                return False
            connection.execute(QUERIES["reopen_compressed"], {"id": scrubbed(session_id)})
            return connection.changes > 0

        return await self.write(reopen)

    async def _notes(self, session_id: str) -> dict[str, Any] | None:
        asked = {"id": scrubbed(session_id)}
        rows = await self.read(lambda c: c.execute(QUERIES["fetch_compression_notes"], asked))
        return rows[0] if rows else None


def _write_cooldown(connection: Connection, session_id: str, until: float | None, error: str | None) -> None:
    asked = {"id": scrubbed(session_id), "until": until, "error": None if error is None else _short(error)}
    connection.execute(QUERIES["write_compression_cooldown"], asked)


def _short(error: str) -> str:
    return scrubbed(error[:_ERROR_CHARS])
