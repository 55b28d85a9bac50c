"""Reads of one reconciliation; each leaves evidence: what was read, when, and ids, times, counts and hashes of it.

Text of a transcript becomes a hash before anybody else sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.contract.reconciliation import Evidence, Found
from aip_hermes.contract.rows import Target
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.preparation import snapshot_of
from aip_hermes.hermes.session_rows import Listed, Rows, SessionRow
from aip_hermes.hermes.wanted import sha256_text
from aip_hermes.hermes_api import HermesCode
from aip_hermes.ports import Clock

__all__ = ["Line", "Reading", "Transcript", "Unread", "number_of"]

PAGE: Final = 200
_MESSAGES: Final = "/api/sessions/{session_id}/messages"
_JOBS: Final = "/api/jobs?include_disabled=true"
_SUMMARY: Final = "[CONTEXT COMPACTION"
"""How Hermes begins the row that stands for what a compression in place took out."""

_GONE_CODES: Final = frozenset({HermesCode.SESSION_NOT_FOUND.value, HermesCode.RUN_NOT_FOUND.value})
_GONE_WORDS: Final = ("Response not found", "Job not found")
"""What Hermes says of responses and jobs, which have no code for it. Any other 404 may be somebody's in between."""

_FINISHED: Final = ("stop", "length")


class Unread(Exception):
    """The endpoint could not be read. cause: one sentence about it, without address and credential."""

    def __init__(self, cause: str, *, retry_after_ms: int | None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One active message. at: Unix seconds. calls: it asks for tools. summary: it stands for rows that were compacted.

    finished: an assistant's last word of a turn; an interrupted or empty one is none.
    """

    role: str
    sha256: str | None
    at: float | None
    finished: bool
    summary: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Transcript:
    """The active messages that the endpoint answers for a session, in order. session_id: whose they are."""

    session_id: str | None
    lines: tuple[Line, ...]


class Reading:
    """What one reconciliation reads at one endpoint. evidence: one entry per read, in order."""

    def __init__(self, rows: Rows, *, endpoint: Endpoint, clock: Clock) -> None:
        self.rows = rows
        self.evidence: list[Evidence] = []
        self._endpoint = endpoint
        self._clock = clock

    async def row(self, session_id: str) -> SessionRow | None:
        """Return a session's row; None where the endpoint says that it has none. Raises: Unread."""
        ids, at_ms = {"session_id": session_id}, self._clock.now_ms()
        try:
            row = await self.rows.row(session_id)
        except HermesFailed as exc:
            self._missing("session", ids, at_ms, exc)
            return None
        if row.id != session_id:
            # Nothing that is said about another row is about this one.
            self._note("session", ids, at_ms, "not_read", {"answered_session_id": row.id})
            raise Unread(f"Hermes endpoint {self._endpoint.id} answered another session's row", retry_after_ms=None)
        self._note("session", ids, at_ms, "found", row.facts() | {"source": row.source})
        return row

    async def messages(self, session_id: str) -> Transcript | None:
        """Return the active messages of a session; None where it has no row. Raises: Unread."""
        ids, at_ms = {"session_id": session_id}, self._clock.now_ms()
        try:
            answer = await self.rows.answer(_MESSAGES, ids)
        except HermesFailed as exc:
            self._missing("messages", ids, at_ms, exc)
            return None
        data = answer.get("data")
        if not isinstance(data, list):
            self._note("messages", ids, at_ms, "not_read", {"reason": "no list of messages"})
            raise Unread(f"Hermes endpoint {self._endpoint.id} answered no list of messages", retry_after_ms=None)
        resolved = answer.get("session_id")
        found = Transcript(
            session_id=resolved if isinstance(resolved, str) else None,
            lines=tuple(_line(each) for each in data if isinstance(each, Mapping)),
        )
        facts = {"answered_session_id": found.session_id, "message_count": len(found.lines)}
        self._note("messages", ids, at_ms, "found", facts)
        return found

    async def target(self, target: Target, ids: Mapping[str, str]) -> JsonObject | None:
        """Return what a row's `target` addresses; None where it is no more. Evidence is its snapshot, as for approvals.

        Raises: Unread.
        """
        what, at_ms = next(iter(ids), "target").removesuffix("_id"), self._clock.now_ms()
        try:
            found = await self.rows.target(target, ids)
        except HermesFailed as exc:
            self._missing(what, ids, at_ms, exc)
            return None
        self._note(what, ids, at_ms, "found", snapshot_of(found, target=target, ids=ids))
        return found

    async def page(self, offset: int) -> Listed:
        """Return the page of the listing of all sessions behind `offset` rows, the newest activity first.

        Raises: Unread.
        """
        at_ms = self._clock.now_ms()
        try:
            listed = await self.rows.listed(limit=PAGE, offset=offset)
        except HermesFailed as exc:
            raise self._unread("session_listing", {}, at_ms, exc) from exc
        self._note("session_listing", {}, at_ms, "found", {"offset": offset, "rows": len(listed.rows)})
        return listed

    async def jobs(self) -> list[Mapping[str, Any]]:
        """Return all scheduled jobs, paused ones too. Raises: Unread."""
        at_ms = self._clock.now_ms()
        try:
            listed = (await self.rows.answer(_JOBS, {})).get("jobs")
        except HermesFailed as exc:
            raise self._unread("job_listing", {}, at_ms, exc) from exc
        if not isinstance(listed, list):
            self._note("job_listing", {}, at_ms, "not_read", {"reason": "no list of jobs"})
            raise Unread(f"Hermes endpoint {self._endpoint.id} answered no list of jobs", retry_after_ms=None)
        self._note("job_listing", {}, at_ms, "found", {"rows": len(listed)})
        return [each for each in listed if isinstance(each, Mapping)]

    def note(self, read: str, ids: Mapping[str, str], facts: Mapping[str, Any]) -> None:
        """Add what was seen in something that was read before."""
        self._note(read, ids, self._clock.now_ms(), "found", facts)

    def _missing(self, read: str, ids: Mapping[str, str], at_ms: int, exc: HermesFailed) -> None:
        provider = exc.details.get("provider") or {}
        said = str(provider.get("message") or "").startswith(_GONE_WORDS)
        if provider.get("status") != 404 or not (provider.get("code") in _GONE_CODES or said):
            raise self._unread(read, ids, at_ms, exc) from exc
        self._note(read, ids, at_ms, "not_found", {"http_status": 404, "code": provider.get("code")})

    def _unread(self, read: str, ids: Mapping[str, str], at_ms: int, exc: HermesFailed) -> Unread:
        provider, why = exc.details.get("provider"), exc.details.get("reason")
        facts: dict[str, Any] = {"error_code": exc.code}
        if isinstance(provider, Mapping) and provider.get("status") is not None:
            facts |= {"http_status": provider["status"], "code": provider.get("code")}
            code = f" `{provider['code']}`" if provider.get("code") else ""
            said = f"answered HTTP {provider['status']}{code}"
        else:
            facts["reason"] = why
            said = f"gave no answer ({str(why or exc.code).replace('_', ' ')})"
        self._note(read, ids, at_ms, "not_read", facts)
        return Unread(f"Hermes endpoint {self._endpoint.id} {said}", retry_after_ms=exc.retry_after_ms)

    def _note(self, read: str, ids: Mapping[str, str], at_ms: int, found: Found, facts: Mapping[str, Any]) -> None:
        self.evidence.append(Evidence(read=read, ids=dict(ids), at_ms=at_ms, found=found, facts=dict(facts)))


def _line(message: Mapping[str, Any]) -> Line:
    content, role = message.get("content"), str(message.get("role"))
    assistant = role == "assistant"
    return Line(
        role=role,
        sha256=sha256_text(content) if isinstance(content, str) else None,
        at=number_of(message.get("timestamp")),
        finished=assistant and message.get("finish_reason") in _FINISHED and not message.get("tool_calls"),
        summary=assistant and isinstance(content, str) and content.startswith(_SUMMARY),
    )


def number_of(value: object) -> float | None:
    """Return a JSON number, or None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
