"""A composed server before an embedded endpoint, with a relay between them that loses answers when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from aip_hermes.client import AipClient, AlreadyDecided, IdentityStore, PeerError
from aip_hermes.client.lifecycle import LifecyclePolicy, SessionLifecycle
from aip_hermes.embedded import Model
from aip_hermes.ports import Clock
from aip_hermes.settings import Settings
from tests.support.embedded_endpoint import KEY, Running, served
from tests.support.server_serving import serving, written_settings
from tests.support.server_site import write_secret

__all__ = ["QUICK", "Fate", "LifecycleSite", "LosingTransport", "Relay", "approve", "lifecycle_site", "relaying"]

QUICK = LifecyclePolicy(wait_s=20, page_size=3)

Fate = Literal["lost", "cut"]
"""lost: it was carried out and its answer is lost. cut: the connection ended before it arrived."""


@dataclass
class Relay:
    """Stands between server and endpoint.

    fates: of the next requests that change something, one each. meanwhile: what happens at the endpoint, once, while
    the next of them is on its way. changes: those that arrived.
    """

    target: str
    fates: list[Fate] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def forward(self, method: str, path: str, headers: httpx.Headers, body: bytes) -> httpx.Response | None:
        fate = None
        if method not in ("GET", "HEAD"):
            fate = self.fates.pop(0) if self.fates else None
            if fate != "cut":
                self.changes.append(f"{method} {path.partition('?')[0]}")
            if self.meanwhile is not None:
                meanwhile, self.meanwhile = self.meanwhile, None
                await meanwhile()
        if fate == "cut":
            return None
        answer = await self.passed(method, path, headers, body)
        return None if fate == "lost" else answer

    async def passed(self, method: str, path: str, headers: httpx.Headers, body: bytes) -> httpx.Response:
        """Pass a request on and return its answer."""
        kept = {name: value for name, value in headers.items() if name not in ("host", "content-length", "connection")}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.request(method, self.target + path, headers=kept, content=body)


@asynccontextmanager
async def relaying(target: str, relay: Relay | None = None) -> AsyncIterator[tuple[Relay, str]]:
    """Run a relay; yield it and where it listens."""
    relay = relay or Relay(target=target)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            parted = (line.partition(": ") for line in lines[1:] if line)
            headers = httpx.Headers([(name, value) for name, _, value in parted])
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            answer = await relay.forward(method, path, headers, body)
            if answer is not None:
                content = answer.content
                told = f"HTTP/1.1 {answer.status_code} X\r\ncontent-length: {len(content)}\r\nconnection: close\r\n"
                told += f"content-type: {answer.headers.get('content-type', 'application/json')}\r\n\r\n"
                writer.write(told.encode("latin-1") + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, httpx.TransportError):
            pass  # whoever breaks off, the other one sees the same
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    try:
        yield relay, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


class LosingTransport(httpx.AsyncBaseTransport):
    """The way between client and server. fates: of the next calls of something that is no read, one each."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(retries=0)
        self.fates: list[Fate] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        changing = any(name in body for name in (b"_create", b"_patch", b"_chat", b"_fork", b"_delete"))
        fate = self.fates.pop(0) if changing and self.fates and request.url.path.endswith("/messages") else None
        if fate == "cut":
            raise httpx.ReadError("cut before it arrived", request=request)
        answer = await self._inner.handle_async_request(request)
        if fate == "lost":
            await answer.aread()
            await answer.aclose()
            raise httpx.ReadError("the answer is lost", request=request)
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, kw_only=True)
class LifecycleSite:
    """endpoint: the embedded Hermes, for arranging and counting."""

    url: str
    folder: Path
    endpoint: Running
    relay: Relay

    def client(self, who: str = "requester", *, store: IdentityStore | None = None, **options: object) -> AipClient:
        return AipClient(base_url=self.url, token_file=self.folder / "tokens" / who, store=store, **options)  # type: ignore[arg-type]

    def lifecycle(self, client: AipClient, name: str = "case-1", policy: LifecyclePolicy = QUICK) -> SessionLifecycle:
        return SessionLifecycle(client, name=name, policy=policy)

    async def rows(self) -> dict[str, int]:
        """Return every session that exists at the endpoint, with its count of active messages."""
        found: dict[str, int] = {}
        answer = await self.endpoint.client.get("/api/sessions", params={"limit": 200, "include_children": "true"})
        for row in answer.json()["data"]:
            found[row["id"]] = row["message_count"]
        return found


async def approve(site: LifecycleSite) -> None:
    """Approve what waits, as the reviewer; what another one approved meanwhile is approved."""
    async with site.client("reviewer") as reviewer:
        for approval in (await reviewer.approvals(status="pending")).approvals:
            try:
                await reviewer.decide(approval.approval_id, decision="approved", reason="checked")
            except AlreadyDecided:
                pass
            except PeerError as refused:
                if refused.details.get("code") != "policy.approval_not_pending":
                    raise


@asynccontextmanager
async def lifecycle_site(
    folder: Path,
    *,
    model: Model | None = None,
    quirks: Iterable[str] = (),
    faults: Iterable[str] = (),
    quiet_s: float = 0.2,
    hermes_clock: Clock | None = None,
) -> AsyncIterator[LifecycleSite]:
    """Serve endpoint, relay and server until the block ends. quiet_s: the quiet times of reconciliation."""
    async with (
        served(folder, model=model, quirks=quirks, faults=faults, clock=hermes_clock) as endpoint,
        relaying(str(endpoint.client.base_url).rstrip("/")) as (relay, relay_url),
    ):
        path = written_settings(folder, endpoint_url=relay_url).path
        text = path.read_text(encoding="utf-8")
        assert "quiet_rows_s = 60" in text
        path.write_text(
            text.replace("quiet_rows_s = 60", f"quiet_rows_s = {quiet_s}\nquiet_turns_s = {quiet_s}"), "utf-8"
        )
        write_secret(folder / "hermes.key", KEY)
        async with serving(Settings.load(path)) as (http, _):
            yield LifecycleSite(url=str(http.base_url).rstrip("/"), folder=folder, endpoint=endpoint, relay=relay)
