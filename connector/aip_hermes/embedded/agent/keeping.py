"""Where the steps of one turn are stored, and what it means when they can't be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.habits import RIGHT, Habits
from aip_hermes.embedded.agent.holding import TurnLease
from aip_hermes.embedded.agent.models import ModelReply
from aip_hermes.embedded.session_db import (
    CompressionSessionClosedError,
    SessionDB,
    SessionTurnLeaseLostError,
    TurnGround,
    UnknownSession,
    Usage,
)

__all__ = ["LOSSES", "Keeper", "ReplyNotStored"]

log = structlog.get_logger(__name__)

LOSSES = (StoreFailure, UnknownSession, CompressionSessionClosedError, SessionTurnLeaseLostError)
"""What keeps a row of a running turn from being stored."""


class ReplyNotStored(Exception):
    """The model replied and its reply could not be stored; the user row is there."""


class Keeper:
    """Stores the rows of one turn in one session, and knows what of the conversation is there.

    db: None where nothing is stored. session_id: another one after a rotation. model_name: the label of a row that has
    none. lease: taken by the question, checked by each write, let go by the last answer; None: there is none. tolerant:
    a row that can't be stored is no failure; `persisted` and `cause` tell of it. row: of a session that has none yet.

    messages: the conversation as it is now, this turn included. calls: requests so far. usage: of all of them.
    newest: row id of the last row that was stored here. stored: how many rows the session has, as far as is known here:
    without those that others add meanwhile. read_to, own: the newest row that was read, and those stored here since.
    """

    def __init__(
        self,
        db: SessionDB | None,
        session_id: str,
        *,
        model_name: str,
        habits: Habits = RIGHT,
        lease: TurnLease | None = None,
        tolerant: bool = False,
        row: Mapping[str, Any] | None = None,
    ) -> None:
        self.db = db
        self.session_id = session_id
        self.lease = lease
        self.messages: list[dict[str, Any]] = []
        self.calls = 0
        self.usage = Usage()
        self.last_prompt_tokens = 0
        self.newest: int | None = None
        self.stored = 0
        self.read_to: int | None = None
        self.own: set[int] = set()
        self.cause: str | None = None
        self.asked = False
        self._row = dict(row or {"source": "api_server"})
        self._model_name = model_name
        self._habits = habits
        self._tolerant = tolerant
        self._unstored: list[dict[str, Any]] = []

    @property
    def persisted(self) -> bool:
        """Whether every row of the turn is in the store."""
        return self.db is not None and self.cause is None

    def stands_on(self, session_id: str, newest: int | None, messages: int) -> None:
        """The conversation is what the session holds, as far as its row `newest`, of which there are `messages`."""
        self.session_id, self.newest, self.stored = session_id, newest, messages
        self.read_to, self.own = newest or 0, set()

    def _stored(self, row_id: int) -> int:
        self.newest = row_id
        self.stored += 1
        self.own.add(row_id)
        return row_id

    def count(self, usage: Usage) -> None:
        """Add what one request used."""
        self.usage = _sum(self.usage, usage)
        self.last_prompt_tokens = usage.input_tokens

    @property
    def holder(self) -> str | None:
        """Who holds the conversation."""
        return None if self.lease is None else self.lease.holder

    async def question(self, row: Mapping[str, Any], ground: TurnGround | None, *, create: bool) -> int | None:
        """Store the user row; returns its id. ground: the row as it was read; None where there is no store.

        Raises ConversationTaken, ConversationMoved, and what keeps it from being stored.
        """
        if self.db is None or ground is None:
            self._unstored.append({**row, "role": "user"})
            return None
        row_id = await self.db.begin_turn(
            ground,
            row,
            turn_lease_holder=self.holder,
            turn_lease_ttl_seconds=300.0 if self.lease is None else self.lease.lease_s,
            row=self._row if create else None,
            follows_compression=self._habits.follows_compression,
        )
        if self.lease is not None:
            self.lease.taken()
        self.stands_on(ground.session_id, ground.newest, ground.messages)
        return self._stored(row_id)

    async def reply(self, reply: ModelReply, tool_calls: Sequence[Mapping[str, Any]] | None) -> int | None:
        """Store an assistant row and what it used; returns its id. Raises ReplyNotStored."""
        if self.db is None:
            self._unstored.append({"reply": reply, "tool_calls": tool_calls})
            return None
        with self._storing():
            row_id = await self.db.record_reply(
                self.session_id,
                reply.text,
                finish_reason=reply.finish_reason,
                usage=reply.usage,
                model=self._model_name,
                tool_calls=tool_calls,
                turn_lease_holder=self.holder,
                release_turn_lease=not tool_calls,
                into_compressed=not self._habits.follows_compression,
            )
            if not tool_calls and self.lease is not None:
                self.lease.released()
            return self._stored(row_id)
        return None

    async def result(self, row: Mapping[str, Any]) -> int | None:
        """Store a tool row; returns its id. Raises ReplyNotStored."""
        if self.db is None:
            self._unstored.append(dict(row))
            return None
        with self._storing():
            row_id = await self.db.append_message(
                self.session_id,
                "tool",
                row["content"],
                tool_name=row["tool_name"],
                tool_call_id=row["tool_call_id"],
                turn_lease_holder=self.holder,
                into_compressed=not self._habits.follows_compression,
            )
            return self._stored(row_id)
        return None

    async def attach(self, db: SessionDB) -> None:
        """Store from now on in `db`, the rows of this turn so far included. Raises StoreFailure; then as before."""
        await db.create_session(self.session_id, **self._row)
        ground = await db.get_turn_ground(self.session_id, follows_compression=False)
        self.stands_on(self.session_id, ground.newest, ground.messages)
        unstored, self._unstored, self.db = self._unstored, [], db
        for row in unstored:
            if "reply" in row:
                await self.reply(row["reply"], row["tool_calls"])
            elif row["role"] == "user":
                with self._storing():
                    self._stored(await db.append_message(self.session_id, **row))
            else:
                await self.result(row)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except LOSSES as exc:
            log.error("turn.reply_not_stored", cause=type(exc).__name__)
            self.cause = self.cause or f"{type(exc).__name__}: {exc}"
            if self._habits.admits_failure and not self._tolerant:
                raise ReplyNotStored from exc


def _sum(one: Usage, other: Usage) -> Usage:
    mine, its = asdict(one), asdict(other)
    return Usage(**{name: mine[name] + its[name] for name in mine})
