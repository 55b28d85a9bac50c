"""The one place that speaks HTTP to a Hermes endpoint. It sends what it is given once, and never repeats it.

A mutation travels only on a connection that is new or idle for less than a second: on an older one the endpoint may
just be closing it, and a request lost that way looks like an uncertain outcome (design D11). Reads keep a pool of
their own, so a read can't refresh a connection that a mutation would then use.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.request import getproxies, proxy_bypass

import httpx

from aip_hermes.contract import load_capability_file
from aip_hermes.hermes.connections import DirectConnections
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import ExchangeFailed, FailureReason, Received, RequestSpec
from aip_hermes.ports import Faults, NoFaults

__all__ = ["CONNECT_TIMEOUT_S", "HermesClient", "Incoming", "Transport"]

Transport = httpx.AsyncBaseTransport
"""What may stand in for the network."""

CONNECT_TIMEOUT_S: Final = 10.0

_TIMES: Final = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S).as_dict()
_PACKED: Final = ("gzip", "x-gzip", "deflate")
"""What somebody in between may do to an answer although it was asked for as it is."""
_MUTATION_IDLE_S: Final = 1.0
_MAX_PORT: Final = 65_535
_KEPT_URLS: Final = 64
"""Most calls of an endpoint go to few addresses, and httpx takes one apart each time that it is made."""
_READ_IDLE_S: Final = 4.0  # under the five seconds after which many a proxy closes


class HermesClient:
    """HTTP to one endpoint.

    transport: stands in for the network; production passes None. max_json_bytes: of one answer, checked against
    Content-Length first, then while reading; None: as published. faults: `after_send` is reached when a mutation has
    been written and nothing of its answer was read.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        transport: Transport | None = None,
        max_json_bytes: int | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults or NoFaults()
        self._origin = httpx.URL(endpoint.base_url)
        self._url_of = lru_cache(maxsize=_KEPT_URLS)(_url_at(self._origin))
        self._max_json_bytes = max_json_bytes or load_capability_file().connector.max_json_response_bytes
        # Loopback traffic never meets a proxy, whatever the environment says.
        proxy = None if endpoint.loopback else _proxy_of(self._origin)
        tls = _tls(endpoint)
        self._mutations = transport or _connections(_MUTATION_IDLE_S, proxy=proxy, tls=tls)
        self._reads = transport or _connections(_READ_IDLE_S, proxy=proxy, tls=tls)
        self._headers = [
            # Named here, since httpx would look up what a punycode name stands for, and not every one stands for any.
            (b"host", self._origin.netloc),
            (b"accept", b"*/*"),
            # identity: a compressed answer has to be unpacked before its size is known.
            (b"accept-encoding", b"identity"),
            (b"connection", b"keep-alive"),
            (b"user-agent", _user_agent().encode("ascii")),
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection. Idempotent."""
        await self._mutations.aclose()
        await self._reads.aclose()

    async def send(self, request: RequestSpec) -> Received:
        """Send one request and read the whole answer.

        Raises: ExchangeFailed.
        """
        progress = _Progress(self._faults if request.mutation else NoFaults())
        with progress.judging():
            message = self._message(request, progress)
            async with asyncio.timeout(request.timeout_s):
                answer = await self._pool(request).handle_async_request(message)
                progress.status = answer.status_code
                try:
                    return await _whole(answer, self._max_json_bytes)
                finally:
                    await answer.aclose()

    @asynccontextmanager
    async def stream(self, request: RequestSpec, *, idle_s: float) -> AsyncIterator[Incoming]:
        """Send one request; yield its answer, to be read piece by piece. Leaving closes the connection.

        request.timeout_s: for all waiting together, from now on; what the reader does meanwhile counts. idle_s: without
        a single byte.
        Raises: ExchangeFailed, also from the reading.
        """
        progress = _Progress(self._faults if request.mutation else NoFaults())
        ends_at = asyncio.get_running_loop().time() + request.timeout_s
        with progress.judging(ends_at):
            message = self._message(request, progress)
            async with _patience(ends_at, idle_s):
                answer = await self._pool(request).handle_async_request(message)
        progress.status = answer.status_code
        try:
            yield Incoming(answer, progress, ends_at=ends_at, idle_s=idle_s, max_json_bytes=self._max_json_bytes)
        finally:
            await answer.aclose()

    def _pool(self, request: RequestSpec) -> Transport:
        return self._mutations if request.mutation else self._reads

    def _message(self, request: RequestSpec, progress: _Progress) -> httpx.Request:
        given = [(name.lower().encode("ascii"), value) for name, value in request.headers]
        names = {name for name, _ in given}
        return httpx.Request(
            request.method,
            self._url_of(request.target),
            headers=[*(pair for pair in self._headers if pair[0] not in names), *given],
            content=request.body,
            extensions={"trace": progress.note, "timeout": _TIMES},
        )


class Incoming:
    """An answer whose body has not been read. status, headers: as in Received."""

    def __init__(
        self, answer: httpx.Response, progress: _Progress, *, ends_at: float, idle_s: float, max_json_bytes: int
    ) -> None:
        self._answer = answer
        self._progress = progress
        self._ends_at = ends_at
        self._idle_s = idle_s
        self._max_json_bytes = max_json_bytes
        self.status = answer.status_code
        self.headers: Mapping[str, str] = dict(answer.headers)

    async def whole(self) -> Received:
        """Read all of it, as `send` does.

        Raises: ExchangeFailed.
        """
        with self._progress.judging(self._ends_at):
            async with _patience(self._ends_at, self._idle_s):
                return await _whole(self._answer, self._max_json_bytes)

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they come, undecoded.

        Raises: ExchangeFailed.
        """
        async with aclosing(cast("AsyncGenerator[bytes, None]", self._answer.aiter_raw())) as raw:
            while True:
                with self._progress.judging(self._ends_at):
                    async with _patience(self._ends_at, self._idle_s):
                        part = await anext(raw, None)
                if part is None:
                    return
                yield part


def _patience(ends_at: float, idle_s: float) -> asyncio.Timeout:
    return asyncio.timeout_at(min(ends_at, asyncio.get_running_loop().time() + idle_s))


async def _whole(answer: httpx.Response, max_bytes: int) -> Received:
    declared = answer.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > max_bytes:
        raise ExchangeFailed("too_large", sent=True, status=answer.status_code)
    packed = answer.headers.get("content-encoding", "").strip().lower() in _PACKED
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None
    body = bytearray()
    async for part in cast("httpx.AsyncByteStream", answer.stream):
        body += part if unpack is None else _unpacked(unpack, part, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            raise ExchangeFailed("too_large", sent=True, status=answer.status_code)
    if unpack is not None and not unpack.eof:
        raise httpx.DecodingError("the compressed answer has no end")
    return Received(status=answer.status_code, headers=dict(answer.headers), body=bytes(body))


def _unpacked(unpack: zlib._Decompress, part: bytes, most: int) -> bytes:
    """Return what a part unpacks to, `most` bytes at most: a few bytes may stand for gigabytes."""
    try:
        return unpack.decompress(part, most)
    except zlib.error as exc:
        raise httpx.DecodingError("the answer is not compressed as it says") from exc


class _Progress:
    """How far an exchange came, by the events of the connection.

    A transport that reports nothing (a test's) counts as having sent, unless its error says that it never connected.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.status: int | None = None
        self._watched = False
        self._began = False

    async def note(self, event: str, info: dict[str, Any]) -> None:
        self._watched = True
        if getattr(info.get("request"), "method", None) == b"CONNECT":
            return  # that is a proxy being asked for a tunnel; the request itself comes through it
        if event.endswith("send_request_headers.started") and not event.startswith(("proxy_", "socks")):
            self._began = True
        elif event.endswith("send_request_body.complete"):
            await self._faults.reach("after_send")

    @contextmanager
    def judging(self, ends_at: float | None = None) -> Iterator[None]:
        """Turn what the HTTP library raises into ExchangeFailed. ends_at: before it, waiting in vain was idleness."""
        try:
            yield
        except TimeoutError as exc:
            idle = ends_at is not None and asyncio.get_running_loop().time() < ends_at
            raise self.failed("idle" if idle else "timeout") from exc
        except httpx.HTTPError as exc:
            raise self.failed(_reason(exc)) from exc
        except httpx.InvalidURL as exc:
            raise ExchangeFailed("unreachable", sent=False) from exc

    def failed(self, reason: FailureReason) -> ExchangeFailed:
        unconnected = reason in ("refused", "unreachable", "unresolved", "connect_timeout", "tls")
        sent = self._began or not (self._watched or unconnected)
        return ExchangeFailed(reason, sent=sent, status=self.status)


def _connections(idle_s: float, *, proxy: str | None, tls: ssl.SSLContext) -> Transport:
    """Return a pool of connections, without the client that httpx puts around it: no cookie of an answer may go along
    with another call, and neither redirects nor authentication are for a library to follow."""
    if proxy is None:
        return DirectConnections(idle_s=idle_s, connect_s=CONNECT_TIMEOUT_S, tls=tls)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=idle_s)
    try:
        if (httpx.URL(proxy).port or 0) > _MAX_PORT:
            return _NoProxy()
        return httpx.AsyncHTTPTransport(verify=tls, trust_env=False, proxy=proxy, limits=limits)
    except (ImportError, ValueError, httpx.InvalidURL):
        return _NoProxy()


class _NoProxy(httpx.AsyncBaseTransport):
    """Stands for a proxy of the environment that is none for us: SOCKS, or no URL. Nothing goes around it."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.extensions["trace"]("connection.started", {})
        raise httpx.ProxyError("the environment names a proxy that cannot be used")


def _url_at(origin: httpx.URL) -> Callable[[str], httpx.URL]:
    """Return what makes the URL of a request's target."""
    return lambda target: origin.copy_with(raw_path=target.encode("ascii"))


def _proxy_of(origin: httpx.URL) -> str | None:
    """Return the proxy that the environment names for an origin, or None."""
    if proxy_bypass(origin.netloc.decode("ascii")):
        return None
    named = getproxies()
    proxy = named.get(origin.scheme) or named.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    """Return what TLS is checked with. Plain loopback has none: an empty store trusts nobody, and is there at once."""
    if endpoint.loopback and endpoint.base_url.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context(trust_env=not endpoint.loopback)


def _user_agent() -> str:
    try:
        release = version("aip-hermes-connector")
    except PackageNotFoundError:  # run from a checkout that is not installed
        release = "0+source"
    return f"aip-connector-hermes-agent/{release}"


def _reason(exc: httpx.HTTPError) -> FailureReason:
    causes = _causes(exc)
    if isinstance(exc, httpx.ConnectTimeout):
        return "connect_timeout"
    if isinstance(exc, httpx.TimeoutException):
        return "timeout"
    if isinstance(exc, httpx.ProxyError):
        return "proxy"
    if isinstance(exc, httpx.ConnectError):
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return "unresolved"
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return "tls"
        if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            return "refused"
        return "unreachable"
    return "broken"


def _causes(exc: BaseException) -> list[BaseException]:
    """Return what `exc` came from, groups opened: a host with several addresses fails with one error for each."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [exc]
    while waiting and len(found) < 32:
        current = waiting.pop()
        if current is None or current in found:
            continue
        found.append(current)
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
    return found
