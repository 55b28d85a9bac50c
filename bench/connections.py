"""Side by side, in one run: a small read over the connections of the connector, and over those of httpx.

Run: python bench/connections.py
What is measured is `HermesClient.send` of one GET whose answer has 15 bytes, with httpx's transport (httpcore) in the
place of ours on the other side; the endpoint is a process of its own. The sides take turns in rounds, and each counts
with the median of its rounds. Prints a table; ends with 1 where ours is not at most 0.8 of the other.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx

from aip_hermes.hermes import Endpoint
from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.ids import EndpointId

ROUNDS = 9
KEPT, NEW = 400, 100
LIMIT = 0.8
ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{"status":"ok"}'
REQUEST = RequestSpec(method="GET", target="/health", headers=(), body=None, timeout_s=30.0, mutation=False)

Side = Callable[[], HermesClient]


class Answers(asyncio.Protocol):
    """Answers each request, whose head comes in one piece or in several."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        self._transport.write(ANSWER * len(heads))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def sides(port: int) -> dict[str, Side]:
    endpoint = Endpoint(id=EndpointId("bench"), base_url=f"http://127.0.0.1:{port}/")
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=4.0)
    return {
        "ours": lambda: HermesClient(endpoint),
        "httpx": lambda: HermesClient(endpoint, transport=httpx.AsyncHTTPTransport(trust_env=False, limits=limits)),
    }


async def kept(side: Side) -> tuple[list[float], float]:
    """Return how long each read took on one connection, and the processor time of one, in seconds."""
    async with side() as client:
        await client.send(REQUEST)
        began = time.process_time()
        walls = [await timed(client) for _ in range(KEPT)]
        return walls, (time.process_time() - began) / KEPT


async def new(side: Side) -> tuple[list[float], float]:
    """The same, each read on a connection of its own; making and closing the client is not counted."""
    walls, spent = [], 0.0
    for _ in range(NEW):
        async with side() as client:
            began = time.process_time()
            walls.append(await timed(client))
            spent += time.process_time() - began
    return walls, spent / NEW


async def timed(client: HermesClient) -> float:
    began = time.perf_counter()
    if (await client.send(REQUEST)).status != 200:
        raise SystemExit("no answer")
    return time.perf_counter() - began


async def measure(port: int) -> bool:
    """Print the table; return whether each line holds."""
    both, held = sides(port), True
    for name, work in (("on a kept connection", kept), ("on a new connection", new)):
        walls: dict[str, list[float]] = {each: [] for each in both}
        spent: dict[str, list[float]] = {each: [] for each in both}
        for turn in range(ROUNDS):
            for each in list(both) if turn % 2 else list(both)[::-1]:
                took, processor = await work(both[each])
                walls[each].append(statistics.median(took))
                spent[each].append(processor)
        for what, of in (("median", walls), ("processor time", spent)):
            ours, theirs = (statistics.median(of[each]) * 1e6 for each in ("ours", "httpx"))
            held = held and ours / theirs <= LIMIT
            sys.stdout.write(f"a read {name}, {what}: {ours:,.0f} µs beside {theirs:,.0f}, {ours / theirs:.2f}\n")
    return held


def main() -> None:
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return
    # httpcore looks for it at each lock. Where it is missing that costs more than all else, and is no merit of ours.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("sniffio", None)
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None
        try:
            held = asyncio.run(measure(int(endpoint.stdout.readline())))
        finally:
            endpoint.terminate()
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
