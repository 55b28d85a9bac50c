"""One HTTP exchange with an AIP server: sent once, never redirected, never repeated, bounded in size."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from aip_hermes.client.failures import (
    ClientFailure,
    ConnectionRefused,
    ConnectTimedOut,
    NameNotResolved,
    NoAnswer,
    NotReachable,
    TlsFailed,
    TooLarge,
    Unusable,
)
from aip_hermes.loopback import dials_this_machine
from aip_hermes.secret import Secret

__all__ = ["MAX_RESPONSE_BYTES", "HttpAnswer", "HttpConnection", "HttpStream", "check_times"]

MAX_RESPONSE_BYTES = 4_194_304

_KEEP_ALIVE_S = 1.0
"""Longer idle connections are not used again: a request lost on a stale one would be a false "uncertain"."""

_CHECK_PROXY = "a proxy is configured; check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """What came back, whole. content: within the limit. headers: names in lower case."""

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpStream:
    """An answer that began. media_type: lower case, without parameters. pieces: its bytes, as they come."""

    status: int
    media_type: str
    pieces: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpConnection:
    """Talks to one origin.

    base_url: `http` or `https`; only its origin counts, a path in it is replaced by the fixed paths of the protocol.
    connect_timeout_s: for the connection. read_timeout_s: between two bytes of a read; None waits for ever.
    answer_timeout_s: the same for a post, which lasts as long as the operation behind it. tls_ca_file: trusted besides
    the usual authorities. Proxy variables of the environment are used for other machines, never for this one.
    transport: replaces the network.
    """

    def __init__(
        self,
        *,
        base_url: str,
        token: Secret | None = None,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float | None = 60.0,
        answer_timeout_s: float | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        tls_ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        check_times(
            connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s, answer_timeout_s=answer_timeout_s
        )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the base URL needs a scheme (http or https) and a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the base URL must not carry a user name or a password")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        try:
            _ = httpx.URL(self.origin).host, parts.port
        except (httpx.InvalidURL, ValueError) as exc:
            raise ValueError("the base URL has no usable host name or port") from exc
        self.max_response_bytes = max_response_bytes
        self._loop: asyncio.AbstractEventLoop | None = None
        self._read = httpx.Timeout(read_timeout_s, connect=connect_timeout_s)
        self._answer = self._answer_within(answer_timeout_s)
        # Identity coding: a compressed answer could be far longer than what the limit saw.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        local = dials_this_machine(parts.hostname)
        self._proxied = not local and _has_proxy(parts.scheme, parts.hostname)
        if token is not None:
            headers["Authorization"] = f"Bearer {token.reveal()}"
        # Plain http to this machine needs no certificates, and reading them takes longer than the whole exchange.
        trust = False if local and parts.scheme == "http" else _trust(tls_ca_file)
        try:
            self._client = httpx.AsyncClient(
                headers=headers,
                follow_redirects=False,
                trust_env=not local,
                verify=trust,
                limits=httpx.Limits(keepalive_expiry=_KEEP_ALIVE_S),
                transport=transport,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as exc:
            # What else is configured was checked above.
            raise NotReachable(
                f"no connection to {self.origin}: the proxy of the environment can't be used", next_step=_CHECK_PROXY
            ) from exc

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._client.aclose()

    async def get(self, path: str, params: Mapping[str, str]) -> HttpAnswer:
        """Read. Raises: NotReachable, NoAnswer, TooLarge; always certain."""
        request = self._client.build_request("GET", self.origin + path, params=params, timeout=self._read)
        return await self._exchange(request, changes=False)

    async def post(self, path: str, body: Mapping[str, Any], *, answer_timeout_s: float | None = None) -> HttpAnswer:
        """Send `body` as JSON, once. Raises: NotReachable (certain), NoAnswer and TooLarge (uncertain).

        answer_timeout_s: for this answer; None: the connection's own.
        """
        timeout = self._answer if answer_timeout_s is None else self._answer_within(answer_timeout_s)
        return await self.send("POST", path, body=body, timeout=timeout, changes=True)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[bytes, bytes] | None = None,
        timeout: httpx.Timeout | float | None = None,
        changes: bool,
    ) -> HttpAnswer:
        """Send one request, once. timeout: for the answer, in seconds; None: that of a read. Raises: as get or post."""
        if isinstance(timeout, int | float):
            timeout = self._answer_within(timeout)
        request = self._request(method, path, body=body, headers=headers, timeout=timeout or self._read)
        return await self._exchange(request, changes=changes)

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None,
        headers: Mapping[bytes, bytes] | None,
        timeout: httpx.Timeout,
    ) -> httpx.Request:
        content = None if body is None else json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        typed = {} if body is None else {b"Content-Type": b"application/json"}
        return self._client.build_request(
            method, self.origin + path, content=content, headers={**typed, **(headers or {})}, timeout=timeout
        )

    def _answer_within(self, seconds: float | None) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=self._read.connect, write=self._read.read)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, accept: str, idle_s: float
    ) -> AsyncIterator[HttpStream]:
        """Read an answer as it comes; its length has no limit here. idle_s: between two bytes.

        Raises: NotReachable, NoAnswer; also while the pieces are read; always certain.
        """
        timeout = httpx.Timeout(idle_s, connect=self._read.connect)
        request = self._client.build_request(
            "GET", self.origin + path, params=params, headers={"Accept": accept}, timeout=timeout
        )
        async with self._begun(request, changes=False) as stream:
            yield stream

    @asynccontextmanager
    async def post_stream(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[bytes, bytes],
        accept: str,
        idle_s: float,
    ) -> AsyncIterator[HttpStream]:
        """Send `body` as JSON, once, and read the answer as it comes. Raises: as stream; uncertain once it was sent."""
        timeout = httpx.Timeout(idle_s, connect=self._read.connect)
        request = self._request(
            "POST", path, body=body, headers={b"Accept": accept.encode(), **headers}, timeout=timeout
        )
        async with self._begun(request, changes=True) as stream:
            yield stream

    @asynccontextmanager
    async def _begun(self, request: httpx.Request, *, changes: bool) -> AsyncIterator[HttpStream]:
        async with self._sent(request, changes=changes) as response:
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            yield HttpStream(
                status=response.status_code,
                media_type=media_type,
                pieces=response.aiter_bytes(),
                headers=dict(response.headers),
            )

    async def whole(self, stream: HttpStream) -> HttpAnswer:
        """Read the rest of a stream that is an answer after all. Raises: TooLarge."""
        content = await self._content(stream.pieces, status=stream.status, changes=False)
        return HttpAnswer(status=stream.status, content=content, headers=stream.headers)

    async def _exchange(self, request: httpx.Request, *, changes: bool) -> HttpAnswer:
        async with self._sent(request, changes=changes) as response:
            status = response.status_code
            content = await self._content(response.aiter_bytes(), status=status, changes=changes)
            return HttpAnswer(status=status, content=content, headers=dict(response.headers))

    @asynccontextmanager
    async def _sent(self, request: httpx.Request, *, changes: bool) -> AsyncIterator[httpx.Response]:
        self._check_usable()
        try:
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx.HTTPError as exc:
            failure = _failure(exc, origin=self.origin, changes=changes)
            if self._proxied and isinstance(failure, NotReachable):
                failure.next_step = _CHECK_PROXY
            raise failure from exc

    def _check_usable(self) -> None:
        """A connection of another event loop breaks in ways that leave open whether a request left."""
        if self._client.is_closed:
            raise Unusable(f"no request to {self.origin}: this client is closed")
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise Unusable(f"no request to {self.origin}: this client belongs to another event loop")

    async def _content(self, pieces: AsyncIterator[bytes], *, status: int, changes: bool) -> bytes:
        content = bytearray()
        async for piece in pieces:
            content += piece
            if len(content) > self.max_response_bytes:
                raise TooLarge(
                    f"HTTP response exceeded the {self.max_response_bytes}-byte limit",
                    http_status=status,
                    uncertain=changes,
                )
        return bytes(content)


def check_times(**seconds: float | None) -> None:
    """Raise ValueError for a time that is none: zero, negative or NaN. None stands for one that was not given."""
    for name, value in seconds.items():
        if value is not None and not value > 0:
            raise ValueError(f"{name} is a number of seconds above 0")


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=str(ca_file))
        except OSError as exc:
            raise TlsFailed(
                f"{ca_file} holds no certificates", next_step="name a PEM file: -----BEGIN CERTIFICATE-----"
            ) from exc
    return context


def _has_proxy(scheme: str, host: str) -> bool:
    proxies = getproxies()
    return bool(proxies.get(scheme) or proxies.get("all")) and not proxy_bypass(host)


def _failure(exc: httpx.HTTPError, *, origin: str, changes: bool) -> ClientFailure:
    """Tell apart what httpx reports; the texts are ours, so that no header or body can be part of them."""
    if isinstance(exc, httpx.ConnectTimeout):
        return ConnectTimedOut(f"no connection to {origin}: the attempt timed out")
    if isinstance(exc, httpx.ConnectError):
        causes = list(_causes(exc))
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return NameNotResolved(f"no connection to {origin}: the host name could not be resolved")
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return TlsFailed(f"no connection to {origin}: TLS failed ({_tls_reason(causes)})")
        if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            return ConnectionRefused(f"no connection to {origin}: refused")
        return NotReachable(f"no connection to {origin}")
    if isinstance(exc, httpx.ProxyError):
        return NotReachable(f"no connection to {origin}: the configured proxy refused", next_step=_CHECK_PROXY)
    if isinstance(exc, httpx.PoolTimeout | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return NotReachable(f"no request to {origin} could be made")
    if isinstance(exc, httpx.TimeoutException):
        return NoAnswer(f"no answer from {origin} in time", uncertain=changes)
    return NoAnswer(f"the connection to {origin} ended without an answer", uncertain=changes)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    pending: list[BaseException | None] = [exc]
    seen: set[int] = set()
    while pending:
        cause = pending.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        pending += [cause.__cause__, cause.__context__]
        if isinstance(cause, BaseExceptionGroup):
            pending += cause.exceptions


def _tls_reason(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            # Both attributes are set by the library that raises, and by nothing else.
            return str(getattr(cause, "verify_message", "") or getattr(cause, "reason", "")) or "no reason given"
    return "no reason given"
