"""Methods that carry sessions from store to store."""

from __future__ import annotations

import asyncio
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import portability
from aip_hermes.embedded.session_db.import_check import ImportLimits, problems
from aip_hermes.embedded.session_db.methods.resuming import ResumeMethods

__all__ = ["PortabilityMethods"]


class PortabilityMethods(ResumeMethods):
    """Export and import."""

    async def export_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the row with `messages`, its live ones as `get_messages` gives them; None for an unknown id.

        Raises SessionExportTooLargeError beyond `max_export_messages` (20,000; 0: any number).
        """
        return await self.read(lambda c: portability.export(c, session_id, limit=self.max_export_messages))

    async def export_session_lineage(self, session_id: str) -> dict[str, Any] | None:
        """Return the whole chain of compressions through the row as one conversation; None for an unknown id.

        The row of its tip, with `lineage_session_ids` from the first on, `segments`, each as `export_session` gives it,
        and `messages` of all of them. Raises SessionExportTooLargeError where a segment is too large.
        """
        return await self.read(lambda c: portability.export_lineage(c, session_id, limit=self.max_export_messages))

    async def export_all(self, source: str | None = None) -> list[dict[str, Any]]:
        """Return every session, or those of one source, as `export_session` does, in the order of their start.

        One view of the store. Raises SessionExportTooLargeError where one is too large.
        """

        def everything(connection: Connection) -> list[dict[str, Any]]:
            ids = portability.exportable(connection, source=source)
            found = (portability.export(connection, one, limit=self.max_export_messages) for one in ids)
            return [document for document in found if document is not None]

        return await self.read(everything)

    async def import_sessions(
        self, sessions: list[dict[str, Any]], *, limits: ImportLimits | None = None
    ) -> dict[str, Any]:
        """Insert exported sessions: all that are not there, in one transaction, or nothing.

        Returns `{ok, imported, skipped, detached, untitled, imported_ids, skipped_ids, untitled_ids, errors}`. An id
        that is there is skipped, never merged. detached: how many lost a parent that is not there or that closes a
        circle. untitled: imported without a title that another session has. Message row ids are new; everything else
        comes out again as it went in. With `errors`, of `{index, error[, session_id]}`, ok is False and nothing was
        written. limits: those of ImportLimits. Raises ValueError for what is no list.
        """
        if not isinstance(sessions, list):
            raise ValueError("sessions must be a list")
        found = await asyncio.to_thread(problems, sessions, limits=limits or ImportLimits())
        if found:
            return _told(portability.Imported(), errors=found)
        now = self._now()
        return _told(await self.write(lambda c: portability.store(c, sessions, now=now)), errors=[])


def _told(done: portability.Imported, *, errors: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "ok": not errors,
        "imported": len(done.imported),
        "skipped": len(done.skipped),
        "detached": len(done.detached),
        "untitled": len(done.untitled),
        "imported_ids": done.imported,
        "skipped_ids": done.skipped,
        "untitled_ids": done.untitled,
        "errors": errors,
    }
