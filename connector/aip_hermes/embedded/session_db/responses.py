"""Stored responses and lasting grants in the session file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["KEPT_RESPONSES", "ResponseStore", "StoredResponse"]

KEPT_RESPONSES: Final = 100
"""How many responses are kept; those used longest ago go first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredResponse:
    """A response and what the next one of its chain needs.

    history: the messages up to and with this response, as a model reads them. document: what a GET answers.
    """

    id: str
    session_id: str
    instructions: str | None
    history: list[dict[str, Any]]
    document: dict[str, Any]


class ResponseStore:
    """Responses on a borrowed store."""

    def __init__(self, db: StoreFile) -> None:
        self._db = db

    async def keep(self, response: StoredResponse, *, conversation: str | None) -> None:
        """Keep a response, let `conversation` end in it, and let go of the oldest; together."""
        row = {
            "id": response.id,
            "session_id": scrubbed(response.session_id),
            "instructions": None if response.instructions is None else scrubbed(response.instructions),
            "history": json.dumps(response.history),
            "document": json.dumps(response.document),
        }

        def keep(connection: Connection) -> None:
            connection.execute(QUERIES["keep_response"], row)
            if conversation is not None:
                parameters = {"name": scrubbed(conversation), "response_id": response.id}
                connection.execute(QUERIES["point_conversation"], parameters)
            connection.execute(QUERIES["drop_oldest_responses"], {"keep": KEPT_RESPONSES})

        await self._db.write(keep)

    async def use(self, response_id: str) -> StoredResponse | None:
        """Return the response and count it as used, or None."""
        return await self._db.write(lambda c: _used(c, response_id))

    async def end_of(self, conversation: str) -> StoredResponse | None:
        """Return the response that a conversation ends in and count it as used; None for one that hasn't begun."""

        def end(connection: Connection) -> StoredResponse | None:
            rows = connection.execute(QUERIES["fetch_conversation"], {"name": scrubbed(conversation)})
            return _used(connection, rows[0]["response_id"]) if rows else None

        return await self._db.write(end)

    async def delete(self, response_id: str) -> bool:
        """Remove the response; a conversation that ended in it begins anew. False for an unknown id."""
        return bool(
            await self._db.write(lambda c: c.execute(QUERIES["delete_response"], {"id": scrubbed(response_id)}))
        )


def _used(connection: Connection, response_id: str) -> StoredResponse | None:
    rows = connection.execute(QUERIES["use_response"], {"id": scrubbed(response_id)})
    return _stored(rows[0]) if rows else None


def _stored(row: Mapping[str, Any]) -> StoredResponse:
    return StoredResponse(
        id=row["id"],
        session_id=row["session_id"],
        instructions=row["instructions"],
        history=json.loads(row["history"]),
        document=json.loads(row["document"]),
    )
