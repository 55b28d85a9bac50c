"""The one place that speaks HTTP to a Hermes endpoint. It sends what it is given once, and never repeats it.

A mutation travels only on a connection that is new or idle for less than a second: on an older one the endpoint may
just be closing it, and a request lost that way looks like an uncertain outcome (design D11). Reads keep a pool of
their own, so a read can't refresh a connection that a mutation would then use.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Final, Self

import httpx

from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import ExchangeFailed, FailureReason, Received, RequestSpec

__all__ = ["CONNECT_TIMEOUT_S", "MAX_JSON_BYTES", "HermesClient", "Transport"]

Transport = httpx.AsyncBaseTransport
"""What may stand in for the network."""

CONNECT_TIMEOUT_S: Final = 10.0
MAX_JSON_BYTES: Final = 16_777_216

_MUTATION_IDLE_S: Final = 1.0
_READ_IDLE_S: Final = 4.0  # under the five seconds after which many a proxy closes


class HermesClient:
    """HTTP to one endpoint.

    transport: stands in for the network; production passes None. max_json_bytes: of one answer, checked against
    Content-Length first, then while reading.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        transport: Transport | None = None,
        max_json_bytes: int = MAX_JSON_BYTES,
    ) -> None:
        self._origin = httpx.URL(endpoint.base_url)
        self._max_json_bytes = max_json_bytes
        # Loopback traffic never meets a proxy, whatever the environment says.
        environment = transport is None and not endpoint.loopback
        tls = _tls(endpoint)
        self._mutations = _http_client(_MUTATION_IDLE_S, transport=transport, trust_env=environment, tls=tls)
        self._reads = _http_client(_READ_IDLE_S, transport=transport, trust_env=environment, tls=tls)

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
        http = self._mutations if request.mutation else self._reads
        progress = _Progress()
        try:
            message = http.build_request(
                request.method,
                self._origin.copy_with(raw_path=request.target.encode("ascii")),
                headers=[(name.encode("ascii"), value) for name, value in request.headers],
                content=request.body,
                extensions={"trace": progress.note},
            )
            async with asyncio.timeout(request.timeout_s):
                answer = await http.send(message, stream=True)
                progress.status = answer.status_code
                try:
                    return Received(
                        status=answer.status_code, headers=dict(answer.headers), body=await self._body(answer)
                    )
                finally:
                    await answer.aclose()
        except TimeoutError as exc:
            raise progress.failed("timeout") from exc
        except httpx.HTTPError as exc:
            raise progress.failed(_reason(exc)) from exc
        except httpx.InvalidURL as exc:
            raise ExchangeFailed("unreachable", sent=False) from exc

    async def _body(self, answer: httpx.Response) -> bytes:
        declared = answer.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self._max_json_bytes:
            raise ExchangeFailed("too_large", sent=True, status=answer.status_code)
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > self._max_json_bytes:
                raise ExchangeFailed("too_large", sent=True, status=answer.status_code)
        return bytes(body)


class _Progress:
    """How far an exchange came, by the events of the connection.

    A transport that reports nothing (a test's) counts as having sent, unless its error says that it never connected.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self._watched = False
        self._began = False

    async def note(self, event: str, _info: dict[str, Any]) -> None:
        self._watched = True
        if event.endswith("send_request_headers.started") and not event.startswith(("proxy_", "socks")):
            self._began = True

    def failed(self, reason: FailureReason) -> ExchangeFailed:
        unconnected = reason in ("refused", "unreachable", "unresolved", "connect_timeout", "tls")
        sent = self._began or not (self._watched or unconnected)
        return ExchangeFailed(reason, sent=sent, status=self.status)


def _http_client(
    idle_s: float, *, transport: Transport | None, trust_env: bool, tls: ssl.SSLContext
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=tls,
        transport=transport,
        trust_env=trust_env,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=idle_s),
        # identity: a compressed answer would have to be unpacked before its size is known.
        headers={"user-agent": _user_agent(), "accept-encoding": "identity"},
    )


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
