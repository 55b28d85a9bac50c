"""An embedded endpoint in this process, and models that a test can steer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from aip_hermes.embedded import Model, ModelFailed, ModelReply, ModelRequest, OfflineModel, Pieces, SessionDB, build_app
from aip_hermes.embedded.session_db import Usage
from aip_hermes.ports import Clock
from aip_hermes.secret import Secret

__all__ = [
    "KEY",
    "SESSION_ROUTES",
    "FailingModel",
    "GatedModel",
    "HaltingModel",
    "RecordingModel",
    "Running",
    "SteppingClock",
    "asgi_client",
    "code_of",
    "endpoint",
    "served",
]

KEY = "embedded-test-key-0123"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}

SESSION_ROUTES = [
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions"),
    ("GET", "/api/sessions/s"),
    ("PATCH", "/api/sessions/s"),
    ("DELETE", "/api/sessions/s"),
    ("GET", "/api/sessions/s/messages"),
    ("POST", "/api/sessions/s/fork"),
    ("POST", "/api/sessions/s/chat"),
]


class RecordingModel:
    """Answers `Reply <n>` and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return "recording"

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        text = f"Reply {len(self.requests)}"
        await self.before_reply()
        yield text
        yield ModelReply(text=text, usage=Usage(input_tokens=10, output_tokens=3))

    async def before_reply(self) -> None:
        """What happens between the question and the first word."""

    async def aclose(self) -> None:
        return


class GatedModel(RecordingModel):
    """Announces each request and answers only once `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def before_reply(self) -> None:
        self.asked.set()
        await self.gate.wait()


class HaltingModel(GatedModel):
    """Says `Half ` and goes on only once `gate` is set; tells when it is given up instead."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up = asyncio.Event()

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        yield "Half "
        try:
            await self.before_reply()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        yield "done."
        yield ModelReply(text="Half done.", usage=Usage(input_tokens=10, output_tokens=3))


class FailingModel(RecordingModel):
    """Fails as long as `failing` is true."""

    failing = True

    async def before_reply(self) -> None:
        if self.failing:
            raise ModelFailed("the model answered HTTP 500", status=500)


class SteppingClock:
    """Steps by `step_ms` with each reading, backwards too."""

    def __init__(self, *, start_ms: int = 1_796_000_000_000, step_ms: int = 1000) -> None:
        self._now_ms = start_ms
        self._step_ms = step_ms

    def now_ms(self) -> int:
        self._now_ms += self._step_ms
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@dataclass(frozen=True, kw_only=True)
class Running:
    """client: authorized. db: the store below, for arranging and looking."""

    client: httpx.AsyncClient
    db: SessionDB

    async def create(self, session_id: str, **fields: Any) -> dict[str, Any]:
        answer = await self.client.post("/api/sessions", json={"id": session_id, **fields})
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()["session"]
        return session

    async def chat(self, session_id: str, message: object = "hello", **fields: Any) -> httpx.Response:
        return await self.client.post(f"/api/sessions/{session_id}/chat", json={"message": message, **fields})

    async def session(self, session_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/sessions/{session_id}")
        assert answer.status_code == 200, answer.text
        session: dict[str, Any] = answer.json()["session"]
        return session

    async def messages(self, session_id: str) -> tuple[str, list[dict[str, Any]]]:
        answer = await self.client.get(f"/api/sessions/{session_id}/messages")
        assert answer.status_code == 200, answer.text
        return answer.json()["session_id"], answer.json()["data"]


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


def code_of(answer: httpx.Response) -> tuple[int, str | None]:
    """Return status and `error.code`."""
    return answer.status_code, answer.json()["error"]["code"]


def asgi_client(app: Any, headers: Mapping[str, str] = AUTHORIZED) -> httpx.AsyncClient:
    """Return a client that calls `app` in this process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hermes.test", headers=dict(headers))


@asynccontextmanager
async def endpoint(
    folder: Path,
    *,
    model: Model | None = None,
    quirks: Iterable[str] = (),
    faults: Iterable[str] = (),
    db: SessionDB | None = None,
    clock: Clock | None = None,
    max_concurrent_runs: int = 10,
    model_window: int | None = None,
) -> AsyncIterator[Running]:
    """Yield an endpoint in this process, its lifespan included."""
    async with db or SessionDB(folder / "hermes.db", clock=clock) as store:
        app = build_app(
            db=store,
            model=model or OfflineModel(),
            key=Secret(KEY),
            quirks=quirks,
            faults=faults,
            clock=clock,
            max_concurrent_runs=max_concurrent_runs,
            model_window=model_window,
        )
        async with app.router.lifespan_context(app), asgi_client(app) as client:
            yield Running(client=client, db=store)


@asynccontextmanager
async def served(
    folder: Path,
    *,
    model: Model | None = None,
    quirks: Iterable[str] = (),
    faults: Iterable[str] = (),
    clock: Clock | None = None,
    max_concurrent_runs: int = 10,
    around: Callable[[Starlette], ASGIApp] = lambda app: app,
) -> AsyncIterator[Running]:
    """Yield an endpoint behind a real server on a free loopback port. around: what is served in the place of it."""
    async with SessionDB(folder / "hermes.db", clock=clock) as store:
        app = build_app(
            db=store,
            model=model or OfflineModel(),
            key=Secret(KEY),
            quirks=quirks,
            faults=faults,
            clock=clock,
            max_concurrent_runs=max_concurrent_runs,
        )
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            server = _Server(
                uvicorn.Config(around(app), log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=1)
            )
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                async with httpx.AsyncClient(
                    base_url=f"http://127.0.0.1:{port}", headers=AUTHORIZED, trust_env=False, timeout=30
                ) as client:
                    async with asyncio.timeout(30):
                        await server.up.wait()
                    yield Running(client=client, db=store)
            finally:
                server.should_exit = True
                await serving
