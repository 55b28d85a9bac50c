"""The State port of a test: values in memory, with versions, and failures where a test wants them."""

from __future__ import annotations

import json
from collections.abc import Callable

from aip_hermes.contract.handler import JsonObject
from aip_hermes.errors import ActionFailed

__all__ = ["MemoryState", "StateDown"]


class StateDown(ActionFailed):
    """The store can't be reached."""


class MemoryState:
    """fails: asked before every access with `read` or the status that is to be stored; true: the store is down.

    stored: every status that was kept, in order.
    """

    def __init__(self, fails: Callable[[str], bool] = lambda _: False) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.stored: list[str] = []
        self.fails = fails

    async def read(self, key: str) -> tuple[JsonObject, int] | None:
        self._access("read")
        found = self.values.get(key)
        return None if found is None else (json.loads(found[0]), found[1])

    async def compare_and_set(self, key: str, *, expected: int | None, value: JsonObject) -> int | None:
        self._access(str(value["status"]))
        version = self.values[key][1] if key in self.values else None
        if version != expected:
            return None
        self.stored.append(str(value["status"]))
        self.values[key] = (json.dumps(value), (version or 0) + 1)
        return (version or 0) + 1

    def binding(self, action_id: str = "act_1") -> JsonObject:
        """Return the stored binding of an action."""
        found: JsonObject = json.loads(self.values[f"aip.connector.hermes_agent.operator_runs.v1:{action_id}"][0])
        return found

    def _access(self, what: str) -> None:
        if self.fails(what):
            raise StateDown("the store is away", retryable=True)
