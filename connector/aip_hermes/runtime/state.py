"""What a connector keeps about its calls, for example which run belongs to an action: durable, compare-and-set.

A value is read with its version and replaced only where that version still stands, so of two writers one learns that
it lost. Connectors and tenants can't see each other's keys. Source: design §3; runtime behaviour §13, §19.
"""

from __future__ import annotations

from typing import Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.runtime.failures import StateUnavailable
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES, from_json, to_json
from aip_hermes.runtime.submission import Submission

__all__ = ["MAX_KEY", "ConnectorState", "state_of"]

MAX_KEY: Final = 1024
"""Characters of a key."""


class ConnectorState:
    """The `State` port (contract.handler) of one connector and one tenant, on the runtime's store."""

    def __init__(self, footing: Footing, *, connector_id: str, tenant: str) -> None:
        """tenant: the empty string stands for none."""
        self._footing = footing
        self._owner = {"connector_id": connector_id, "tenant": tenant}

    async def read(self, key: str) -> tuple[JsonObject, int] | None:
        """Return a value and its version, or None. Raises: StateUnavailable; ValueError for a key that is none."""
        address = self._owner | {"state_key": _checked(key)}
        try:
            rows = await self._footing.database.read(lambda c: c.execute(QUERIES["fetch_state"], address))
        except StoreFailure as exc:
            raise StateUnavailable("what was kept about the call can't be read now", retryable=True) from exc
        return (from_json(rows[0]["value"]), rows[0]["version"]) if rows else None

    async def compare_and_set(self, key: str, *, expected: int | None, value: JsonObject) -> int | None:
        """Store a value if the version is still `expected` (None: there is none yet); return the new one, else None.

        Raises: StateUnavailable; ValueError for a key that is none.
        """
        params = self._owner | {"state_key": _checked(key), "value": to_json(value), "now": self._footing.now_ms()}
        query, more = ("create_state", {}) if expected is None else ("replace_state", {"expected": expected})

        def once(connection: Connection) -> int | None:
            rows = connection.execute(QUERIES[query], params | more)
            return rows[0]["version"] if rows else None

        try:
            return await self._footing.database.write(once)
        except StoreFailure as exc:
            raise StateUnavailable("what is to be kept about the call can't be stored now", retryable=True) from exc


def state_of(footing: Footing, submission: Submission) -> ConnectorState:
    """Return what the connector of a submission keeps for the submission's tenant."""
    assert submission.connector is not None  # noqa: S101 - the capability check comes first
    return ConnectorState(footing, connector_id=submission.connector.connector_id, tenant=submission.tenant)


def _checked(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY or "\0" in key:
        raise ValueError(f"a key of a connector's state has 1 to {MAX_KEY} characters and no NUL")
    return key
