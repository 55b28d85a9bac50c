"""A HermesClient before an embedded endpoint, or before a stub that answers as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aip_hermes.client import HermesClient
from aip_hermes.hermes_api import SESSION_FIELDS
from aip_hermes.secret import Secret
from tests.support.client_stub_server import StubServer, running_stub
from tests.support.embedded_endpoint import KEY, RecordingModel, served
from tests.support.server_site import FixedClock

__all__ = ["SESSION", "embedded", "stub"]

SESSION = dict.fromkeys(SESSION_FIELDS) | {"id": "s1", "message_count": 2}


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[HermesClient, RecordingModel]]:
    model = RecordingModel()
    async with (
        served(folder, model=model) as running,
        HermesClient(base_url=str(running.client.base_url), key=Secret(KEY)) as hermes,
    ):
        yield hermes, model


@asynccontextmanager
async def stub(answer: Any) -> AsyncIterator[tuple[HermesClient, StubServer]]:
    with running_stub(answer if callable(answer) else lambda _: answer) as server:
        async with HermesClient(base_url=server.url, key=Secret("stub-key"), clock=FixedClock()) as hermes:
            yield hermes, server
