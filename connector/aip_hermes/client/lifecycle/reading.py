"""What a lifecycle reads at an endpoint, through the AIP server: rows, messages, listings.

A list moves while it is read, and what it leaves out proves nothing: exact reads decide, listings are looked through
page by page, each session once. Source: Hermes API server §3, §5.3; design D15; field reports F002, F106.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aip_hermes.client.hermes_objects import (
    Message,
    Session,
    SessionListing,
    SessionPage,
    page_of,
    session_of,
    transcript_of,
)
from aip_hermes.client.lifecycle.failures import NoSuchSession
from aip_hermes.client.results import CallFailed, CallResult
from aip_hermes.client.session_pages import read_all
from aip_hermes.hermes_api import HermesCode
from aip_hermes.ids import CapabilityId, EndpointId, HermesSessionId

__all__ = ["Active", "Call", "Listed", "SessionReads"]

Call = Callable[[CapabilityId, dict[str, Any]], Awaitable[CallResult]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Active:
    """Active messages as an endpoint answers them for `requested`. whose: the row that they are of. reason: why that
    is another row, as the server proves it."""

    requested: HermesSessionId
    whose: HermesSessionId
    reason: Literal["none", "compression", "branch", "unknown"]
    messages: tuple[Message, ...] = field(repr=False)

    @property
    def effective(self) -> HermesSessionId:
        """The id to go on with: another one only after a proven compression."""
        return self.whose if self.reason == "compression" else self.requested

    @property
    def own(self) -> bool:
        """Whether the messages are those of the session, or of its continuation."""
        return self.whose == self.effective

    @property
    def last_id(self) -> int:
        """The newest message id that was seen; ids grow over the whole store."""
        return max((message.id for message in self.messages), default=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """entry: the session as a list shows it, or None. seen: how many different sessions were looked at; pages: read."""

    entry: Session | None
    seen: int
    pages: int


class SessionReads:
    """Reads of one endpoint. call: makes one call of a capability with an input.

    Raises, from each method: the failures of `call`; CallFailed for a read that failed.
    """

    def __init__(self, call: Call, *, endpoint: EndpointId, page_size: int, rounds: int) -> None:
        self._call = call
        self._endpoint = endpoint
        self._page_size = page_size
        self._rounds = rounds

    def capability(self, operation: str) -> CapabilityId:
        """Return the capability of an operation of the endpoint."""
        return CapabilityId(f"cap:hermes_agent:{self._endpoint}:{operation}")

    async def find(self, session_id: HermesSessionId) -> Session | None:
        """Return the row of exactly this id, or None where the endpoint says that there is none."""
        result = await self._read("session_get", {"session_id": str(session_id)})
        if _is_missing(result):
            return None
        return session_of(result.completed())

    async def get(self, session_id: HermesSessionId, *, step: str | None = None) -> Session:
        """Return the row of exactly this id. Raises: NoSuchSession."""
        row = await self.find(session_id)
        if row is None:
            raise NoSuchSession(
                f"endpoint {self._endpoint} has no session {session_id}",
                next_step="compare the id with the listing (`sessions_list`); it may have been deleted, or never made",
                step=step,
                session_id=session_id,
            )
        return row

    async def messages(self, session_id: HermesSessionId) -> Active | None:
        """Return the active messages, or None where the endpoint says that there is no such row."""
        result = await self._read("session_messages", {"session_id": str(session_id)})
        if _is_missing(result):
            return None
        read = transcript_of(result.completed(), requested=session_id)
        effect = result.session
        reason: Literal["none", "compression", "branch", "unknown"] = "none"
        if read.session_id != session_id:
            proven = effect is not None and effect.effective == read.session_id
            reason = effect.reason if proven and effect is not None and effect.reason != "none" else "unknown"
        return Active(requested=session_id, whose=read.session_id, reason=reason, messages=read.messages)

    async def listed(self, session_id: HermesSessionId, *, children: bool) -> Listed:
        """Look for a session in the listing, page by page, and once more from the start where it is not there.

        children: also among those that the list hides: subagents, continuations, some forks.
        """
        seen: set[str] = set()
        pages = 0
        for _ in range(self._rounds):
            offset = 0
            while True:
                page = await self._page(self._page_size, offset, children=children)
                pages += 1
                ids = [entry.id for entry in page.sessions]
                new = set(ids) - seen
                seen |= new
                for entry in page.sessions:
                    if entry.id == session_id:
                        return Listed(entry=entry, seen=len(seen), pages=pages)
                if not page.has_more or len(ids) < 2:
                    break
                # One row over, so that a list that moves by one does not hide a row between two pages.
                offset += len(ids) - 1
        return Listed(entry=None, seen=len(seen), pages=pages)

    async def every(self, *, children: bool = True) -> SessionListing:
        """Return every session once, with what is known of changes meanwhile."""

        async def page(limit: int, offset: int) -> SessionPage:
            return await self._page(limit, offset, children=children)

        return await read_all(page, page_size=self._page_size)

    async def children(self, session_id: HermesSessionId) -> tuple[HermesSessionId, ...]:
        """Return the ids of the rows whose parent a session is, as far as the listings show them."""
        found: dict[HermesSessionId, None] = {}
        for _ in range(self._rounds):
            listing = await self.every()
            found |= {row.id: None for row in listing.sessions if row.parent_session_id == session_id}
            if not listing.changed:
                break
        return tuple(sorted(found))

    async def _page(self, limit: int, offset: int, *, children: bool) -> SessionPage:
        asked: dict[str, Any] = {"limit": limit, "offset": offset}
        if children:
            asked["include_children"] = True
        return page_of((await self._read("sessions_list", asked)).completed())

    async def _read(self, operation: str, input: Mapping[str, Any]) -> CallResult:
        return await self._call(self.capability(operation), dict(input))


def _is_missing(result: CallResult) -> bool:
    if result.outcome == "completed":
        return False
    provider = result.error.details.get("provider") if result.error is not None else None
    if isinstance(provider, Mapping) and provider.get("code") == HermesCode.SESSION_NOT_FOUND:
        return True
    raise CallFailed(result)
