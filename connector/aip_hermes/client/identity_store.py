"""A file of identities on SQLite: any number of processes may use one at once.

The one module of the client that knows `database`. Source: design §2, §6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from aip_hermes.client.identities import CallRecord, CallState, IdentityClash, IdentityStoreFailed, Instruction
from aip_hermes.database import Connection, Database, Queries, StoreFailure
from aip_hermes.ids import ActionId, CapabilityId, EndpointId, HermesSessionId, HermesSessionKey, IdempotencyKey
from aip_hermes.ports import Clock, SystemClock

__all__ = ["APPLICATION_ID", "SqliteIdentityStore"]

T = TypeVar("T")

APPLICATION_ID: Final = 0x41495049
"""`AIPI` in the file's header."""

_QUERIES: Final[Mapping[str, str]] = Queries.load(package="aip_hermes.client", names=("identity_store.sql",))
_IDENTITIES: Final[Mapping[str, Callable[[str], Any]]] = {
    "action_id": ActionId,
    "capability_id": CapabilityId,
    "endpoint": EndpointId,
    "idempotency_key": IdempotencyKey,
    "session_id": HermesSessionId,
    "new_session_id": HermesSessionId,
    "session_key": HermesSessionKey,
}
_SAME: Final = ("server", "content_hash")
"""What must not differ between two submissions of one Action ID."""


class SqliteIdentityStore:
    """An IdentityStore in one file (0600); made at first use, with its folder. The constructor touches nothing.

    Use it as an async context manager, or call `aclose`.
    """

    def __init__(self, path: Path | str, *, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._database = Database(
            path,
            migrations="aip_hermes.client.identity_migrations",
            application_id=APPLICATION_ID,
            clock=self._clock,
        )

    @property
    def path(self) -> Path:
        """Where the file is or will be."""
        return self._database.path

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the file. Idempotent."""
        await self._database.close()

    async def begin(self, record: CallRecord) -> CallRecord:
        """See IdentityStore."""
        now = self._clock.now_ms()
        return await self._write(lambda db: _begin(db, record, now=now), action_id=record.action_id)

    async def keep_answer(self, action_id: ActionId, *, state: CallState, result: Mapping[str, Any]) -> None:
        """See IdentityStore."""
        values = {"action_id": action_id, "state": state, "result": _to_json(result), "now": self._clock.now_ms()}
        await self._write(lambda db: db.execute(_QUERIES["keep_answer"], values), action_id=action_id)

    async def call(self, action_id: ActionId) -> CallRecord | None:
        """See IdentityStore."""
        rows = await self._rows("fetch_call", action_id=str(action_id))
        return rows[0] if rows else None

    async def open_calls(
        self, *, server: str | None = None, endpoint: EndpointId | None = None, group: str | None = None
    ) -> Sequence[CallRecord]:
        """See IdentityStore."""
        return await self._rows("unsettled_calls", server=server, endpoint=endpoint, call_group=group)

    async def calls(self, *, group: str) -> Sequence[CallRecord]:
        """See IdentityStore."""
        return await self._rows("calls_of_group", call_group=group)

    async def forget(self, *, settled_before_ms: int) -> int:
        """Remove calls, decisions and cancels whose end was known before that Unix time, in milliseconds; return how
        many. Never open ones.
        """
        values = {"before": settled_before_ms}

        def once(db: Connection) -> int:
            return sum(len(db.execute(_QUERIES[name], values)) for name in ("forget_calls", "forget_instructions"))

        return await self._write(once)

    async def begin_instruction(self, instruction: Instruction) -> Instruction:
        """See IdentityStore."""
        now = self._clock.now_ms()
        return await self._write(lambda db: _begin_instruction(db, instruction, now=now))

    async def keep_said(self, instruction: Instruction, *, result: Mapping[str, Any], settled: bool) -> None:
        """See IdentityStore."""
        values = {
            "server": instruction.server,
            "instruction_id": instruction.instruction_id,
            "state": "settled" if settled else "open",
            "result": _to_json(result),
            "now": self._clock.now_ms(),
        }
        await self._write(lambda db: db.execute(_QUERIES["keep_said"], values))

    async def instruction(self, *, server: str, instruction_id: str) -> Instruction | None:
        """See IdentityStore."""
        values = {"server": server, "instruction_id": instruction_id}
        rows = await self._read(lambda db: db.execute(_QUERIES["fetch_instruction"], values))
        return _instruction(rows[0]) if rows else None

    async def open_instructions(self, *, server: str | None = None) -> Sequence[Instruction]:
        """See IdentityStore."""
        values = {"server": server}
        rows = await self._read(lambda db: db.execute(_QUERIES["open_instructions"], values))
        return [_instruction(row) for row in rows]

    async def remember(self, *, group: str, name: str, value: Any) -> None:
        """See IdentityStore."""
        values = {"call_group": group, "name": name, "value": _to_json(value), "now": self._clock.now_ms()}
        await self._write(lambda db: db.execute(_QUERIES["remember"], values))

    async def remember_first(self, *, group: str, name: str, value: Any) -> Any:
        """See IdentityStore."""
        values = {"call_group": group, "name": name, "value": _to_json(value), "now": self._clock.now_ms()}
        rows = await self._write(lambda db: db.execute(_QUERIES["remember_first"], values))
        return json.loads(rows[0]["value"])

    async def recall(self, *, group: str) -> dict[str, Any]:
        """See IdentityStore."""
        values = {"call_group": group}
        rows = await self._read(lambda db: db.execute(_QUERIES["recall"], values))
        return {row["name"]: json.loads(row["value"]) for row in rows}

    async def _rows(self, query: str, **values: object) -> list[CallRecord]:
        rows = await self._read(lambda db: db.execute(_QUERIES[query], values))
        return [_record(row) for row in rows]

    async def _read(self, function: Callable[[Connection], T]) -> T:
        try:
            return await self._database.read(function)
        except (StoreFailure, OSError) as exc:
            raise self._failed(exc, "be read") from exc

    async def _write(self, function: Callable[[Connection], T], *, action_id: ActionId | None = None) -> T:
        try:
            return await self._database.write(function)
        except (StoreFailure, OSError, UnicodeError) as exc:
            raise self._failed(exc, "take this down", action_id=action_id) from exc

    def _failed(self, exc: Exception, what: str, *, action_id: ActionId | None = None) -> IdentityStoreFailed:
        reason = exc.strerror or "refused" if isinstance(exc, OSError) else str(exc)
        about = "" if action_id is None else f" about {action_id}"
        return IdentityStoreFailed(
            f"the file of identities {self.path} can't {what}{about}: {reason}",
            details={} if action_id is None else {"action_id": str(action_id)},
        )


def _begin(db: Connection, record: CallRecord, *, now: int) -> CallRecord:
    found = db.execute(_QUERIES["fetch_call"], {"action_id": str(record.action_id)})
    if not found:
        return _record(db.execute(_QUERIES["begin_call"], {**_columns(record), "now": now})[0])
    kept = _record(found[0])
    if any(getattr(kept, name) != getattr(record, name) for name in _SAME):
        raise IdentityClash(
            f"{record.action_id} stands for another call ({kept.capability_id} at {kept.server}); nothing was sent",
            details={"action_id": str(record.action_id), "capability_id": str(kept.capability_id)},
        )
    # The answer to a completed action is bound to its ID for good; after everything else the call is open again.
    over = kept.state == "settled" and (kept.result or {}).get("outcome") == "completed"
    values = {"action_id": str(record.action_id), "state": "settled" if over else "open", "now": now}
    return _record(db.execute(_QUERIES["begin_again"], values)[0])


def _begin_instruction(db: Connection, instruction: Instruction, *, now: int) -> Instruction:
    names = ("server", "instruction_id", "kind", "about", "content_hash")
    values: dict[str, object] = {name: str(getattr(instruction, name)) for name in names}
    found = db.execute(_QUERIES["fetch_instruction"], values)
    if found and any(found[0][name] != values[name] for name in names):
        raise IdentityClash(
            f"{instruction.instruction_id} was begun with other content; nothing was sent",
            details={"instruction_id": instruction.instruction_id, "about": found[0]["about"]},
        )
    values |= {"said": _to_json(dict(instruction.said)), "now": now}
    return _instruction(db.execute(_QUERIES["begin_instruction"], values)[0])


def _instruction(row: Mapping[str, Any]) -> Instruction:
    names = ("server", "instruction_id", "kind", "about", "content_hash", "state", "attempts", "begun_at", "updated_at")
    values: dict[str, Any] = {name: row[name] for name in names}
    result = None if row["result"] is None else json.loads(row["result"])
    return Instruction(**values, said=json.loads(row["said"]), result=result)


def _columns(record: CallRecord) -> dict[str, object]:
    names = (*_IDENTITIES, "server", "mode", "content_hash", "step")
    values: dict[str, object] = {name: getattr(record, name) for name in names}
    # The driver binds plain strings only.
    plain = {name: None if value is None else str(value) for name, value in values.items()}
    return {**plain, "call_group": record.group}


def _record(row: Mapping[str, Any]) -> CallRecord:
    identities: dict[str, Any] = {
        name: None if row[name] is None else made(row[name]) for name, made in _IDENTITIES.items()
    }
    plain = ("server", "mode", "content_hash", "step", "state", "attempts", "begun_at", "sent_at", "updated_at")
    result = None if row["result"] is None else json.loads(row["result"])
    values: dict[str, Any] = {name: row[name] for name in plain}
    return CallRecord(**identities, **values, group=row["call_group"], result=result)


def _to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
