"""A client of the session routes of one Hermes endpoint; no AIP is needed.

Hermes ignores idempotency keys on these routes, so nothing that changes something is ever repeated here, and whoever
creates or forks names the new session: a lost answer can then be looked up. Source: Hermes API server §3, §4; design
§1, D11.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote, urlencode

import httpx

from aip_hermes.client import hermes_objects as objects
from aip_hermes.client.failures import ClientFailure, Undecodable
from aip_hermes.client.hermes_answers import HermesRefused, about_session, object_of
from aip_hermes.client.hermes_turns import turn_events
from aip_hermes.client.http import HttpConnection, check_times
from aip_hermes.client.reply import JsonObject
from aip_hermes.client.safe_reads import SafeReads
from aip_hermes.client.session_pages import read_all
from aip_hermes.client.token_file import load_token
from aip_hermes.hermes_api import HermesCode, new_session_id_problem
from aip_hermes.ids import HermesSessionId, HermesSessionKey
from aip_hermes.ports import Clock, SystemClock
from aip_hermes.secret import Secret

__all__ = ["KEEP", "HermesClient", "Keep"]

T = TypeVar("T")

MAX_TRANSCRIPT_BYTES: Final = 16_777_216
_SESSIONS: Final = "/api/sessions"
_MAX_PAGE: Final = 200


class Keep:
    """The type of KEEP."""


KEEP: Final = Keep()
"""Leave a title as it is; None clears it."""


class HermesClient:
    """One endpoint.

    base_url: `http://host:port`. key, or key_file (0600). Times in seconds: turn_timeout_s bounds one turn of the
    agent, read_timeout_s every other answer. read_tries: of reads; nothing else is repeated. Identities are passed by
    keyword. Use it as an async context manager, or call `aclose`.

    Raises, from each method: HermesRefused for an error status, with `hermes_code`; NotReachable; NoAnswer;
    Undecodable; TooLarge. `uncertain` is true where the endpoint may have changed something. ValueError for an id that
    no path can carry, or that Hermes refuses for a new session.
    """

    def __init__(
        self,
        *,
        base_url: str,
        key: Secret | None = None,
        key_file: Path | str | None = None,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 60.0,
        turn_timeout_s: float = 900.0,
        read_tries: int = 3,
        max_response_bytes: int = MAX_TRANSCRIPT_BYTES,
        tls_ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        if key is not None and key_file is not None:
            raise ValueError("a key is given by value or by file, not by both")
        check_times(turn_timeout_s=turn_timeout_s)
        self._turn_timeout_s = turn_timeout_s
        self._reads = SafeReads(tries=read_tries, clock=clock or SystemClock())
        self._http = HttpConnection(
            base_url=base_url,
            token=load_token(file=Path(key_file)) if key_file is not None else key,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            max_response_bytes=max_response_bytes,
            tls_ca_file=tls_ca_file,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()

    async def health(self) -> JsonObject:
        """Return what `/health` says; it needs no key."""
        return await self._read("/health")

    async def list_sessions(
        self, *, limit: int = 50, offset: int = 0, source: str | None = None, include_children: bool = False
    ) -> objects.SessionPage:
        """Return one page, the last active first. limit: 1–200. include_children: also subagents, continuations and
        forks that the list hides."""
        if not 1 <= limit <= _MAX_PAGE or offset < 0:
            raise ValueError(f"limit is 1–{_MAX_PAGE} and offset is not negative")
        query = {"limit": str(limit), "offset": str(offset)}
        query |= {} if source is None else {"source": source}
        query |= {"include_children": "true"} if include_children else {}
        return objects.page_of(await self._read(f"{_SESSIONS}?{urlencode(query)}"))

    async def list_all(
        self, *, source: str | None = None, include_children: bool = False, page_size: int = _MAX_PAGE
    ) -> objects.SessionListing:
        """Return every session once, with what is known of changes while the pages were read."""

        async def page(limit: int, offset: int) -> objects.SessionPage:
            return await self.list_sessions(
                limit=limit, offset=offset, source=source, include_children=include_children
            )

        return await read_all(page, page_size=page_size)

    async def create(
        self,
        *,
        session_id: HermesSessionId,
        title: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> objects.Session:
        """Create a session under an id of the caller's. Refused: `session_exists`, `invalid_title`, …"""
        _check_new(session_id)
        members = {"id": str(session_id), "title": title, "model": model, "system_prompt": system_prompt}
        body = {name: value for name, value in members.items() if value is not None}
        raw = await self._change("POST", _SESSIONS, session_id=session_id, body=body)
        return self._made(lambda: objects.session_of(raw), session_id=session_id)

    async def get(self, *, session_id: HermesSessionId) -> objects.Session:
        """Return the row of exactly this id. Refused: `session_not_found`."""
        return objects.session_of(await self._read(_path(session_id), session_id=session_id))

    async def find(self, *, session_id: HermesSessionId) -> objects.Session | None:
        """Return the row, or None where the endpoint says that there is none."""
        try:
            return await self.get(session_id=session_id)
        except HermesRefused as exc:
            if exc.http_status == 404 and exc.hermes_code == HermesCode.SESSION_NOT_FOUND:
                return None
            raise

    async def patch(
        self, *, session_id: HermesSessionId, title: str | Keep | None = KEEP, end_reason: str | None = None
    ) -> objects.Session:
        """Change title, end reason, or both. end_reason: ends the session; the first reason wins, a later one is
        answered with the row as it is."""
        body: JsonObject = {} if isinstance(title, Keep) else {"title": title}
        body |= {} if end_reason is None else {"end_reason": end_reason}
        raw = await self._change("PATCH", _path(session_id), session_id=session_id, body=body)
        return self._made(lambda: objects.session_of(raw), session_id=session_id)

    async def delete(self, *, session_id: HermesSessionId) -> objects.Deleted:
        """Delete a row, its messages and its subagents. A running turn brings the row back."""
        raw = await self._change("DELETE", _path(session_id), session_id=session_id)
        return self._made(lambda: objects.deleted_of(raw, requested=session_id), session_id=session_id)

    async def messages(self, *, session_id: HermesSessionId) -> objects.Transcript:
        """Return the active messages, and whose they are."""
        raw = await self._read(_path(session_id, "messages"), session_id=session_id)
        return objects.transcript_of(raw, requested=session_id)

    async def fork(
        self, *, session_id: HermesSessionId, new_session_id: HermesSessionId, title: str | None = None
    ) -> objects.Session:
        """Branch a session and end the source as `branched`, unless it has ended; return the child.

        A refusal may come after both have happened: it is uncertain, read source and child.
        """
        _check_new(new_session_id)
        body: JsonObject = {"id": str(new_session_id)} | ({} if title is None else {"title": title})
        raw = await self._change("POST", _path(session_id, "fork"), session_id=session_id, body=body, forks=True)
        return self._made(lambda: objects.session_of(raw), session_id=session_id)

    async def chat(
        self,
        message: Any,
        *,
        session_id: HermesSessionId,
        system_message: str | None = None,
        session_key: HermesSessionKey | None = None,
        timeout_s: float | None = None,
    ) -> objects.Turn:
        """Run one turn and return the reply. message: a text, or a list of text and image parts.

        timeout_s: instead of turn_timeout_s. An answer that does not come leaves a turn that runs on: uncertain.
        """
        check_times(timeout_s=timeout_s)
        raw = await self._change(
            "POST",
            _path(session_id, "chat"),
            session_id=session_id,
            body=_turn(message, system_message),
            headers=_memory(session_key),
            timeout_s=timeout_s or self._turn_timeout_s,
        )
        return self._made(lambda: objects.turn_of(raw, requested=session_id), session_id=session_id)

    async def chat_stream(
        self,
        message: Any,
        *,
        session_id: HermesSessionId,
        system_message: str | None = None,
        session_key: HermesSessionKey | None = None,
        idle_s: float = 90.0,
    ) -> AsyncGenerator[objects.TurnEvent, None]:
        """Run one turn and yield its events as they come, to the terminal one. idle_s: without a byte; an endpoint
        gives a sign of life every 30 s.

        Leaving stops no turn. Raises: NoAnswer, uncertain, for a stream that ends without a terminal event.
        """
        check_times(idle_s=idle_s)
        with _about(session_id):
            events = turn_events(
                self._http,
                _path(session_id, "chat/stream"),
                _turn(message, system_message),
                headers=_memory(session_key),
                idle_s=idle_s,
            )
            async for event in events:
                yield event

    async def _read(self, path: str, *, session_id: HermesSessionId | None = None) -> JsonObject:
        async def once() -> JsonObject:
            return object_of(await self._http.send("GET", path, changes=False), changes=False)

        with _about(session_id):
            return await self._reads(once)

    async def _change(
        self,
        method: str,
        path: str,
        *,
        session_id: HermesSessionId,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[bytes, bytes] | None = None,
        timeout_s: float | None = None,
        forks: bool = False,
    ) -> JsonObject:
        with _about(session_id):
            answer = await self._http.send(method, path, body=body, headers=headers, timeout=timeout_s, changes=True)
            return object_of(answer, changes=True, forks=forks)

    def _made(self, read: Callable[[], T], *, session_id: HermesSessionId) -> T:
        """Read the answer to a change: one that can't be read proves nothing about the change."""
        with _about(session_id):
            try:
                return read()
            except Undecodable as failure:
                failure.uncertain = True
                raise


@contextmanager
def _about(session_id: HermesSessionId | None) -> Iterator[None]:
    try:
        yield
    except ClientFailure as failure:
        about_session(failure, session_id)
        raise


def _path(session_id: HermesSessionId, rest: str = "") -> str:
    if session_id in (".", "..") or any(c in session_id for c in "\0\r\n"):
        raise ValueError("no path can carry this session id")
    try:
        segment = quote(session_id, safe="")
    except UnicodeEncodeError:
        raise ValueError("no path can carry this session id: it has a lone surrogate") from None
    return f"{_SESSIONS}/{segment}" + (f"/{rest}" if rest else "")


def _check_new(session_id: HermesSessionId) -> None:
    if problem := new_session_id_problem(session_id):
        raise ValueError(problem)


def _turn(message: Any, system_message: str | None) -> JsonObject:
    return {"message": message} | ({} if system_message is None else {"system_message": system_message})


def _memory(session_key: HermesSessionKey | None) -> dict[bytes, bytes]:
    if session_key is None:
        return {}
    # Surrounding white space is no part of a scope: the endpoint trims it, and a header can't carry it.
    try:
        value = session_key.strip().encode()
    except UnicodeEncodeError:
        value = b""
    if not value or any(byte < 0x20 or byte == 0x7F for byte in value):
        raise ValueError("no header can carry this session key") from None
    return {b"X-Hermes-Session-Key": value}
