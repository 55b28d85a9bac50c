"""Kinds of commands that a person allowed for good."""

from __future__ import annotations

from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile
from aip_hermes.ports import Clock

__all__ = ["GrantStore"]


class GrantStore:
    """Grants on a borrowed store; they hold for every session."""

    def __init__(self, db: StoreFile, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def keep(self, pattern: str) -> None:
        """Allow a kind of command from now on."""
        row = {"pattern": scrubbed(pattern), "granted_at": self._clock.now_ms() / 1000}
        await self._db.write(lambda c: c.execute(QUERIES["keep_grant"], row))

    async def covers(self, pattern: str) -> bool:
        """Tell whether a kind of command is allowed."""
        return bool(await self._db.read(lambda c: c.execute(QUERIES["fetch_grant"], {"pattern": scrubbed(pattern)})))
