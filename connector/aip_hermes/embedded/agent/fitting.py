"""Compression of a conversation that grows out of what its model reads: head, summary, tail.

The model itself writes the summary. A summary that fails changes nothing; none is tried again for a while.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.keeping import LOSSES, Keeper
from aip_hermes.embedded.agent.models import Model, ModelFailed, ModelRequest, whole_reply
from aip_hermes.embedded.agent.reading import readable_calls
from aip_hermes.embedded.agent.windows import CHARS_PER_TOKEN, Window, estimated_tokens, split
from aip_hermes.embedded.session_db import CompressionSessionBusyError, SessionDB, Usage, repair_message_sequence
from aip_hermes.embedded.session_db.columns import text_of
from aip_hermes.embedded.session_db.compression import SUMMARY_MARK
from aip_hermes.ports import Clock

__all__ = ["COOLDOWN_S", "Fitter", "new_session_id"]

log = structlog.get_logger(__name__)

COOLDOWN_S: Final = 600.0
_LOCK_S: Final = 900.0
_TASK: Final = "compression"
_SHOWN_CHARS: Final = 4_000
_LEAST_CHARS: Final = 200
_INSTRUCTION: Final = (
    "You shorten conversations. Write down what somebody needs who goes on with this one: facts, decisions, names and "
    "numbers, what was tried, what is open. Add nothing, answer nothing. Plain text."
)
_INTRODUCTION: Final = (
    "prior context. {count} earlier messages of this conversation stand here as a summary; it is background, no "
    "request.\n\n"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Middle:
    head: list[dict[str, Any]]
    middle: list[dict[str, Any]]
    tail: list[dict[str, Any]]


class Fitter:
    """Compresses the conversation of a keeper. in_place: in its row, else into a new one that is linked to it.

    window: what fits, and what is kept. Without a store it compresses what is in memory.
    """

    def __init__(self, *, model: Model, clock: Clock, window: Window, in_place: bool = True) -> None:
        self._model = model
        self._clock = clock
        self._window = window
        self._in_place = in_place
        self._not_before: dict[str, float] = {}

    async def fit(self, keeper: Keeper, *, system: str | None, tools: Sequence[Any]) -> None:
        """Compress where the next request would be too long, unless a summary of this session that failed, or that did
        not help, is not long ago.
        """

        def fits() -> bool:
            return estimated_tokens(keeper.messages, system=system, tools=tools) < self._window.trigger

        if fits() or await self._cools_down(keeper):
            return
        if await self.compress(keeper) and not fits():
            log.warning("compression.did_not_help")
            self._rest(keeper.session_id)

    async def compress(self, keeper: Keeper) -> bool:
        """Compress now. False, and nothing has changed, where there is too little, where somebody else compresses the
        session, or where it failed, which is noted.
        """
        head, middle, tail = split(keeper.messages, self._window)
        if not middle:
            return False
        if keeper.db is None:
            return await self._compress(keeper, _Middle(head=head, middle=middle, tail=tail), None)
        holder = f"{keeper.holder or 'agent'}:compression={secrets.token_hex(4)}"
        session_id = keeper.session_id
        try:
            if not await keeper.db.try_acquire_compression_lock(session_id, holder, _LOCK_S):
                return False
            return await self._compress(keeper, _Middle(head=head, middle=middle, tail=tail), holder)
        except StoreFailure as exc:
            log.warning("compression.given_up", cause=type(exc).__name__)
            return False
        finally:
            # Also where taking it was cancelled: it may have been taken all the same.
            await finished(_let_go(keeper, session_id, holder))

    async def _compress(self, keeper: Keeper, parts: _Middle, holder: str | None) -> bool:
        told = _as_text(parts.middle, most=self._window.trigger * CHARS_PER_TOKEN - len(_INSTRUCTION))
        request = ModelRequest(messages=[{"role": "user", "content": told}], system=_INSTRUCTION, tools=())
        try:
            keeper.calls += 1
            reply = await whole_reply(self._model, request)
            if not reply.text.strip():
                raise ModelFailed("the summary is empty")
        except ModelFailed as exc:
            await self._failed(keeper, str(exc))
            return False
        keeper.count(reply.usage)
        summary = _summary(parts, reply.text.strip())
        compacted = [*parts.head, summary, *parts.tail]
        try:
            await finished(self._publish(keeper, compacted, holder))
        except (*LOSSES, CompressionSessionBusyError) as exc:
            log.warning("compression.not_published", cause=type(exc).__name__)
            return False
        self._not_before.pop(keeper.session_id, None)
        await self._account(keeper, reply.usage)
        return True

    async def _account(self, keeper: Keeper, usage: Usage) -> None:
        """Count what the summary used by its model; the row's own sums are those of the conversation."""
        if keeper.db is None:
            return
        try:
            await keeper.db.record_auxiliary_usage(keeper.session_id, _TASK, model=self._model.name, **asdict(usage))
        except LOSSES as exc:
            log.warning("compression.usage_not_counted", cause=type(exc).__name__)

    async def _publish(self, keeper: Keeper, compacted: list[dict[str, Any]], holder: str | None) -> None:
        """Write it down, then let the conversation go on with it."""
        db, session_id = keeper.db, keeper.session_id
        if db is not None:
            rows = [_storable(message) for message in compacted]
            row = await db.get_session(session_id)
            marks: dict[str, Any] = {
                "watermark": keeper.read_to,
                "covered": keeper.own,
                "lock_holder": holder,
                "turn_lease_holder": keeper.holder,
            }
            if self._in_place or row is None or row["ended_at"] is not None:
                await db.archive_and_compact(session_id, rows, **marks)
            else:
                child_id = new_session_id(self._clock)
                await db.publish_compression_child(session_id, child_id, rows, **marks)
                session_id = child_id
            await _stand_on(keeper, db, session_id, len(rows))
        messages = [{name: value for name, value in m.items() if name != "_row_id"} for m in compacted]
        repair_message_sequence(messages)
        keeper.messages[:] = messages

    async def _cools_down(self, keeper: Keeper) -> bool:
        now = self._clock.now_ms() / 1000
        if now < self._not_before.get(keeper.session_id, 0.0):
            return True
        if keeper.db is None:
            return False
        try:
            row = await keeper.db.get_session(keeper.session_id)
        except StoreFailure:
            return True
        return row is not None and (row["compression_failure_cooldown_until"] or 0) > now

    def _rest(self, session_id: str) -> None:
        """Try none by itself for a while, in this session: an endpoint has many."""
        now = self._clock.now_ms() / 1000
        running = {one: until for one, until in self._not_before.items() if until > now}
        self._not_before = running | {session_id: now + COOLDOWN_S}

    async def _failed(self, keeper: Keeper, error: str) -> None:
        log.warning("compression.summary_failed")
        self._rest(keeper.session_id)
        if keeper.db is None:
            return
        try:
            await keeper.db.record_compression_failure(keeper.session_id, error, cooldown_seconds=COOLDOWN_S)
        except StoreFailure as exc:
            log.warning("compression.failure_not_noted", cause=type(exc).__name__)


def new_session_id(clock: Clock) -> str:
    """Return `YYYYMMDD_HHMMSS_` in local time and six hex digits."""
    moment = datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC).astimezone()
    return f"{moment:%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


async def _stand_on(keeper: Keeper, db: SessionDB, session_id: str, messages: int) -> None:
    """Let the keeper go on behind the compacted rows; what others wrote meanwhile comes after them and was not read."""
    newest: int | None = None
    try:
        newest = (await db.get_messages(session_id, limit=messages))[-1]["id"]
    except StoreFailure as exc:  # it is published all the same; the next turn finds that it knows nothing, and reads
        log.warning("compression.not_read_back", cause=type(exc).__name__)
    keeper.stands_on(session_id, newest, messages if newest is not None else -1)
    if newest is None:
        keeper.newest, keeper.read_to = -1, None


async def _let_go(keeper: Keeper, session_id: str, holder: str) -> None:
    if keeper.db is None:
        return
    try:
        await keeper.db.release_compression_lock(session_id, holder)
    except StoreFailure as exc:  # it expires
        log.warning("compression.lock_not_released", cause=type(exc).__name__)


def _summary(parts: _Middle, text: str) -> dict[str, Any]:
    # Roles alternate, so that no repair joins the summary with what a person said.
    role = "assistant" if parts.head and parts.head[-1]["role"] == "user" else "user"
    content = f"{SUMMARY_MARK}] {_INTRODUCTION.format(count=len(parts.middle))}{text}"
    return {"role": role, "content": content, "display_kind": "hidden"}


def _storable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message as the store takes it: lists of parts as text, and no text that only a model was sent."""
    row = {name: value for name, value in message.items() if name != "api_content" or isinstance(value, str)}
    return row if isinstance(row["content"], str | None) else {**row, "content": text_of(row["content"])}


def _as_text(messages: Sequence[Mapping[str, Any]], *, most: int) -> str:
    """Return the messages as a text for a summary, about `most` characters: each cut, and the middle ones left out, as
    far as that needs.
    """
    share = min(_SHOWN_CHARS, max(_LEAST_CHARS, most // max(1, len(messages))))
    lines = [_line(message, share) for message in messages]
    fitting = max(2, most // (share + _LEAST_CHARS))
    if len("\n\n".join(lines)) > most and len(lines) > fitting:
        first = fitting // 2
        lines[first : len(lines) - (fitting - first)] = [f"({len(lines) - fitting} messages are left out here)"]
    return "\n\n".join(lines)


def _line(message: Mapping[str, Any], most: int) -> str:
    text = text_of(message.get("content"))
    shown = text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"
    calls = [str(call["function"]["name"]) for call in readable_calls(message.get("tool_calls"))]
    named = f" (calls {', '.join(calls)})" if calls else ""
    return f"{message['role']}{named}: {shown}"
