"""Jobs in the session file: JSON documents under a short id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["JobStore"]

Job = dict[str, Any]


class JobStore:
    """Jobs on a borrowed store. A document has at least `id` and `enabled`."""

    def __init__(self, db: StoreFile) -> None:
        self._db = db

    async def add(self, job: Mapping[str, Any]) -> None:
        """Keep a new job."""
        await self._db.write(lambda c: c.execute(QUERIES["insert_job"], _row(job)))

    async def get(self, job_id: str) -> Job | None:
        """Return the job, or None."""
        return await self._db.read(lambda c: _fetch(c, job_id))

    async def listed(self, *, include_disabled: bool) -> list[Job]:
        """Return the jobs in the order in which they were made."""
        wanted = {"include_disabled": int(include_disabled)}
        rows = await self._db.read(lambda c: c.execute(QUERIES["list_jobs"], wanted))
        return [json.loads(row["document"]) for row in rows]

    async def change(self, job_id: str, changed: Callable[[Job], Job]) -> Job | None:
        """Read, change and write a job in one transaction; None for an unknown id. What `changed` raises passes."""

        def change(connection: Connection) -> Job | None:
            job = _fetch(connection, job_id)
            if job is None:
                return None
            job = changed(job)
            connection.execute(QUERIES["write_job"], _row(job))
            return job

        return await self._db.write(change)

    async def delete(self, job_id: str) -> bool:
        """Remove the job; False for an unknown id."""
        return bool(await self._db.write(lambda c: c.execute(QUERIES["delete_job"], {"id": job_id})))


def _fetch(connection: Connection, job_id: str) -> Job | None:
    rows = connection.execute(QUERIES["fetch_job"], {"id": job_id})
    return json.loads(rows[0]["document"]) if rows else None


def _row(job: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": job["id"], "enabled": int(job["enabled"]), "document": json.dumps(job)}
