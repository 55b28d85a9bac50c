"""The composed server before an embedded endpoint that has faults, with one clock of which both know.

What may change something is counted where it enters the endpoint, outside of everything under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from aip_hermes.app import serve
from aip_hermes.client import AipClient, CallResult, Reconciliation
from aip_hermes.embedded import planned_faults
from aip_hermes.embedded.faults.exchange import LATE_S, LOCKED_S
from aip_hermes.ids import ActionId
from aip_hermes.settings import Settings
from tests.support.client_site import cap
from tests.support.embedded_endpoint import KEY, RecordingModel, Running, served
from tests.support.reconcile_site import MovableClock
from tests.support.server_serving import written_settings
from tests.support.server_site import write_secret

__all__ = ["QUIET_S", "FaultSite", "HeldClock", "eventually", "fault_site"]

QUIET_S = 60
"""The quiet times of reconciliation here."""


class HeldClock(MovableClock):
    """What is late, and who holds a lock, waits for `let`. held: how many wait."""

    def __init__(self, beside: MovableClock) -> None:
        super().__init__()
        self._beside = beside
        self._gate = asyncio.Event()
        self.held = 0

    def now_ms(self) -> int:
        return self._beside.now_ms()

    async def sleep(self, seconds: float) -> None:
        if seconds not in (LATE_S, LOCKED_S):
            await super().sleep(seconds)
            return
        self.held += 1
        try:
            await self._gate.wait()
        finally:
            self.held -= 1

    def let(self) -> None:
        """Let all go on who wait now."""
        self._gate.set()
        self._gate = asyncio.Event()


class Counted:
    """The endpoint's application. mutations: method and path of what arrived and may change something."""

    def __init__(self) -> None:
        self.app = Starlette()
        self.mutations: list[tuple[str, str]] = []

    def around(self, app: Starlette) -> Counted:
        self.app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            self.mutations.append((scope["method"], scope["path"]))
        await self.app(scope, receive, send)


@dataclass(frozen=True, kw_only=True)
class FaultSite:
    """hermes: the endpoint as it is, for arranging and looking."""

    aip: AipClient
    reviewer: AipClient
    hermes: Running
    counted: Counted
    clock: MovableClock
    held: HeldClock

    def meets(self, fault: str) -> None:
        """Let the next request of an operation meet a fault: `NAME:OPERATION:1`."""
        self.counted.app.plan = planned_faults([fault])  # type: ignore[attr-defined]

    async def act(self, operation: str, values: Mapping[str, Any]) -> CallResult:
        """Submit an action, have it approved where that is asked for, and return its result."""
        asked = await self.aip.call(cap(operation), dict(values))
        if asked.approval_id is not None and asked.outcome == "pending":
            await self.reviewer.decide(asked.approval_id, decision="approved", reason="checked")
            return await self.aip.result(asked.action_id)
        return asked

    async def look(self, action_id: ActionId) -> Reconciliation:
        """Reconcile an action, and check that nothing that may change something reached the endpoint, and that its
        result is what it was.
        """
        sent, before = len(self.counted.mutations), await self._result(action_id)
        verdict = await self.aip.reconcile(action_id)
        assert len(self.counted.mutations) == sent
        assert await self._result(action_id) == before
        return verdict

    async def _result(self, action_id: ActionId) -> Any:
        status = await self.aip.status(action_id)
        return (await self.aip.result(action_id)).raw if status.terminal else None


async def eventually(ask: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a state that stays; asking is an exchange, so that others go on meanwhile."""
    async with asyncio.timeout(30):
        while not await ask():
            pass


@asynccontextmanager
async def fault_site(
    folder: Path, *, quirks: Iterable[str] = (), turn_timeout_s: int = 900
) -> AsyncIterator[FaultSite]:
    """Serve endpoint and server until the block ends."""
    clock, counted = MovableClock(), Counted()
    held = HeldClock(clock)
    async with served(folder, model=RecordingModel(), quirks=quirks, clock=held, around=counted.around) as hermes:
        path = written_settings(folder, endpoint_url=str(hermes.client.base_url).rstrip("/") + "/").path
        text = path.read_text(encoding="utf-8")
        for written, meant in (
            ("quiet_rows_s = 60", f"quiet_rows_s = {QUIET_S}\nquiet_turns_s = {QUIET_S}"),
            ("turn_timeout_s = 900", f"turn_timeout_s = {turn_timeout_s}"),
        ):
            assert written in text
            text = text.replace(written, meant, 1)
        path.write_text(text, encoding="utf-8")
        write_secret(folder / "hermes.key", KEY)
        async with _served(Settings.load(path), clock) as url:
            tokens = folder / "tokens"
            async with (
                AipClient(base_url=url, token_file=tokens / "requester", clock=clock) as aip,
                AipClient(base_url=url, token_file=tokens / "reviewer", clock=clock) as reviewer,
            ):
                yield FaultSite(aip=aip, reviewer=reviewer, hermes=hermes, counted=counted, clock=clock, held=held)


@asynccontextmanager
async def _served(settings: Settings, clock: MovableClock) -> AsyncIterator[str]:
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, on_ready=ready.set_result, stop=stop, clock=clock))
    try:
        async with asyncio.timeout(30):
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield ready.result()
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await task
