"""What a Hermes endpoint answers on its session routes, with types. Unknown members are kept in `raw` and `extra`.

A list in another envelope, or a member of another kind, is a failure that names it. Source: Hermes API server §3, §4;
field report F101.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from aip_hermes.client.failures import Undecodable
from aip_hermes.client.reply import JsonObject
from aip_hermes.hermes_api import LIST_FIELDS, MESSAGE_FIELDS, SESSION_FIELDS
from aip_hermes.ids import HermesSessionId, IdentityError

__all__ = [
    "Deleted",
    "Message",
    "Session",
    "SessionListing",
    "SessionPage",
    "Transcript",
    "Turn",
    "TurnEvent",
    "deleted_of",
    "page_of",
    "session_of",
    "transcript_of",
    "turn_of",
]

T = TypeVar("T")

_KNOWN: Final = frozenset((*SESSION_FIELDS, *LIST_FIELDS))
_MESSAGE: Final = frozenset(MESSAGE_FIELDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """One row. Times are Unix seconds with a fraction. A member that an endpoint does not show is None.

    last_active, preview, lineage_root_id: of list entries only. Of an entry that stands for a compressed chain, id,
    title and counts are those of the newest part, started_at and tokens those of the root.
    """

    id: HermesSessionId
    source: str | None
    user_id: str | None
    model: str | None
    title: str | None
    started_at: float | None
    ended_at: float | None
    end_reason: str | None
    message_count: int | None
    tool_call_count: int | None
    input_tokens: int | None
    output_tokens: int | None
    parent_session_id: HermesSessionId | None
    has_system_prompt: bool | None
    has_model_config: bool | None
    last_active: float | None
    preview: str | None = field(repr=False)
    lineage_root_id: HermesSessionId | None
    raw: JsonObject = field(repr=False)

    @property
    def extra(self) -> JsonObject:
        """Members that no release known here has."""
        return {name: value for name, value in self.raw.items() if name not in _KNOWN}


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionPage:
    """One page, the last active first. limit, offset: as used. has_more: may be true on an exactly full last page."""

    sessions: tuple[Session, ...]
    limit: int | None
    offset: int | None
    has_more: bool
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionListing:
    """All pages, each session once. No snapshot: pages move while they are read.

    changed: the list was seen to change while it was read, so that a session may be missing; read again when no turn
    runs. pages: how many were read.
    """

    sessions: tuple[Session, ...]
    changed: bool
    pages: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One active row of a transcript; ids grow over the whole store and have gaps."""

    id: int
    session_id: HermesSessionId | None
    role: str
    content: Any = field(repr=False)
    tool_call_id: str | None
    tool_calls: Any = field(repr=False)
    tool_name: str | None
    timestamp: float | None
    finish_reason: str | None
    raw: JsonObject = field(repr=False)

    @property
    def extra(self) -> JsonObject:
        """Members that no release known here has."""
        return {name: value for name, value in self.raw.items() if name not in _MESSAGE}


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcript:
    """The active messages, in order. session_id: whose they are; with 0.19.0 that may be a fork of the requested one,
    so another id is no proof of a continuation (design D15)."""

    requested: HermesSessionId
    session_id: HermesSessionId
    messages: tuple[Message, ...]
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A model's reply, which proves nothing about what was stored: read the messages (design D20).

    session_id: the effective one. content: the reply. usage: of this turn.
    """

    requested: HermesSessionId
    session_id: HermesSessionId
    content: Any = field(repr=False)
    usage: JsonObject
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEvent:
    """One event of a streamed turn. session_id: after a rotating compression the last events name the new one.

    terminal: nothing follows. failed: the endpoint says that the turn did not end well; a failed model looks like
    success.
    """

    name: str
    session_id: HermesSessionId | None
    data: JsonObject = field(repr=False)

    @property
    def delta(self) -> str:
        """The piece of text of an `assistant.delta`; empty for every other event."""
        text = self.data.get("delta") if self.name == "assistant.delta" else None
        return text if isinstance(text, str) else ""

    @property
    def terminal(self) -> bool:
        """Whether it ends the turn."""
        return self.name in ("run.completed", "error", "done")

    @property
    def failed(self) -> bool:
        """Whether the endpoint says that the turn failed."""
        return self.name == "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """deleted: False where the row vanished by somebody else's hand."""

    session_id: HermesSessionId
    deleted: bool
    raw: JsonObject = field(repr=False)


def session_of(raw: JsonObject) -> Session:
    """Read `{"object": "hermes.session", "session": {…}}`. Raises: Undecodable."""
    return _session(_member(raw, "session", dict, "the answer"))


def page_of(raw: JsonObject) -> SessionPage:
    """Read a page of the list. Raises: Undecodable, which names a missing `data`."""
    entries = _member(raw, "data", list, "the list of sessions")
    return SessionPage(
        sessions=tuple(_session(entry) for entry in entries),
        limit=_optional(raw, "limit", int, "the list of sessions"),
        offset=_optional(raw, "offset", int, "the list of sessions"),
        has_more=raw.get("has_more") is True,
        raw=raw,
    )


def transcript_of(raw: JsonObject, *, requested: HermesSessionId) -> Transcript:
    """Read a list of messages. Raises: Undecodable, which names a missing `data`."""
    entries = _member(raw, "data", list, "the list of messages")
    return Transcript(
        requested=requested,
        session_id=_id(raw, "session_id", "the list of messages") or requested,
        messages=tuple(_message(entry) for entry in entries),
        raw=raw,
    )


def turn_of(raw: JsonObject, *, requested: HermesSessionId) -> Turn:
    """Read the answer to a chat. Raises: Undecodable."""
    message = _member(raw, "message", dict, "the answer to the turn")
    return Turn(
        requested=requested,
        session_id=_id(raw, "session_id", "the answer to the turn") or requested,
        content=message.get("content"),
        usage=_optional(raw, "usage", dict, "the answer to the turn") or {},
        raw=raw,
    )


def deleted_of(raw: JsonObject, *, requested: HermesSessionId) -> Deleted:
    """Read the answer to a delete. Raises: Undecodable."""
    return Deleted(
        session_id=_id(raw, "id", "the answer to the delete") or requested,
        deleted=_member(raw, "deleted", bool, "the answer to the delete"),
        raw=raw,
    )


def _session(raw: Any) -> Session:
    what = "a session"
    if not isinstance(raw, dict):
        raise Undecodable(f"Hermes answer: {what} is no object")
    own = _id(raw, "id", what)
    if own is None:
        raise Undecodable(f"Hermes answer: {what} has no `id`")
    return Session(
        id=own,
        source=_optional(raw, "source", str, what),
        user_id=_optional(raw, "user_id", str, what),
        model=_optional(raw, "model", str, what),
        title=_optional(raw, "title", str, what),
        started_at=_number(raw, "started_at", what),
        ended_at=_number(raw, "ended_at", what),
        end_reason=_optional(raw, "end_reason", str, what),
        message_count=_optional(raw, "message_count", int, what),
        tool_call_count=_optional(raw, "tool_call_count", int, what),
        input_tokens=_optional(raw, "input_tokens", int, what),
        output_tokens=_optional(raw, "output_tokens", int, what),
        parent_session_id=_id(raw, "parent_session_id", what),
        has_system_prompt=_optional(raw, "has_system_prompt", bool, what),
        has_model_config=_optional(raw, "has_model_config", bool, what),
        last_active=_number(raw, "last_active", what),
        preview=_optional(raw, "preview", str, what),
        lineage_root_id=_id(raw, "_lineage_root_id", what),
        raw=raw,
    )


def _message(raw: Any) -> Message:
    what = "a message"
    if not isinstance(raw, dict):
        raise Undecodable(f"Hermes answer: {what} is no object")
    return Message(
        id=_member(raw, "id", int, what),
        session_id=_id(raw, "session_id", what),
        role=_member(raw, "role", str, what),
        content=raw.get("content"),
        tool_call_id=_optional(raw, "tool_call_id", str, what),
        tool_calls=raw.get("tool_calls"),
        tool_name=_optional(raw, "tool_name", str, what),
        timestamp=_number(raw, "timestamp", what),
        finish_reason=_optional(raw, "finish_reason", str, what),
        raw=raw,
    )


def _member(raw: Mapping[str, Any], name: str, kind: type[T], what: str) -> T:
    value = _optional(raw, name, kind, what)
    if value is None:
        raise Undecodable(f"Hermes answer: {what} has no `{name}`")
    return value


def _optional(raw: Mapping[str, Any], name: str, kind: type[T], what: str) -> T | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Undecodable(f"Hermes answer: `{name}` of {what} is no {kind.__name__}")
    return value


def _number(raw: Mapping[str, Any], name: str, what: str) -> float | None:
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Undecodable(f"Hermes answer: `{name}` of {what} is no number")
    return float(value)


def _id(raw: Mapping[str, Any], name: str, what: str) -> HermesSessionId | None:
    value = _optional(raw, name, str, what)
    try:
        return None if value is None else HermesSessionId(value)
    except IdentityError as exc:
        raise Undecodable(f"Hermes answer: `{name}` of {what}: {exc}") from None
