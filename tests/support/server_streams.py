"""The native surface over real HTTP, on a real runtime with a scripted provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from aip_hermes import sse
from aip_hermes.contract import Catalog
from aip_hermes.ports import Clock, SystemClock, new_id
from aip_hermes.runtime import Authorities, Runtime, RuntimeLimits
from aip_hermes.server import Gateway, TokenTable, native_application
from aip_hermes.server.listening import listen, serve_asgi
from tests.support.runtime_connector import ScriptedConnector
from tests.support.server_serving import REQUESTER, written_settings

__all__ = ["frames", "streaming_server"]


@asynccontextmanager
async def streaming_server(
    folder: Path,
    connector: ScriptedConnector,
    *,
    clock: Clock | None = None,
    port: int = 0,
    extra: str = "",
    limits: RuntimeLimits | None = None,
    authorities: Authorities | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve, on a free port unless one is given; the client is the requester of tenant `local`.

    extra: appended to the settings.
    """
    moments = clock or SystemClock()
    settings = written_settings(folder, extra=extra)
    gateway = Gateway(settings=settings, tokens=TokenTable.of(settings, clock=moments), clock=moments, new_id=new_id)
    catalog = Catalog(connector.offers())
    runtime = await Runtime.open(
        store=folder / "data" / "runtime.sqlite3",
        catalog=catalog,
        connectors=[connector],
        authorities=authorities or Authorities(),
        clock=moments,
        limits=limits,
    )
    gateway.open(runtime, catalog)
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    with listen("127.0.0.1", port, advice="") as listener:
        serving = asyncio.create_task(
            serve_asgi(native_application(gateway), listener, stop=stop, on_ready=ready.set_result)
        )
        try:
            async with httpx.AsyncClient(
                base_url=await ready, headers=REQUESTER, trust_env=False, timeout=30
            ) as client:
                yield client
        finally:
            stop.set()
            await serving
            await runtime.aclose()


async def frames(response: httpx.Response) -> AsyncIterator[tuple[str | None, str | None, Any]]:
    """Read (event, id, data) of a followed stream."""
    decoder = sse.Decoder(max_line_bytes=1 << 20, max_frame_bytes=1 << 20, max_stream_bytes=1 << 26, max_events=10_000)
    async for part in response.aiter_raw():
        for frame in decoder.feed(part):
            yield frame.event, frame.id, None if frame.data is None else json.loads(frame.data)
