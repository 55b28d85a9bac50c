"""The server's memory while a large turn passes through it, measured from outside of its process."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from aip_hermes import sse
from tests.support.hermes_streams import StreamReply, StreamStub
from tests.support.hermes_stub import row_of
from tests.support.processes import start, stop
from tests.support.server_serving import REQUESTER, envelope, written_settings

MIB = 1 << 20
FRAMES = 4_000
STREAM_BYTES = 60 * MIB
GROWTH = 40 * MIB
EVENT_STREAM = {"content-type": "text/event-stream"}


def delta(size: int) -> bytes:
    """Return one event of `size` bytes."""
    frame = b'event: assistant.delta\ndata: {"session_id": "s", "delta": "%s"}\n\n'
    return frame % (b"x" * (size - len(frame) + 2))


@pytest.fixture
async def endpoint() -> AsyncIterator[StreamStub]:
    async with StreamStub([row_of("s")]) as stub:
        yield stub


@pytest.fixture
def server(tmp_path: Path, endpoint: StreamStub) -> Iterator[tuple[subprocess.Popen[str], str]]:
    settings = written_settings(tmp_path, endpoint_url=endpoint.base_url)
    process = start(["serve", "--config", str(settings.path)], log=tmp_path / "log")
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["aip_url"]
    finally:
        assert stop(process) == 0


def memory(process: subprocess.Popen[str], member: str) -> int:
    """Return a member of the process's status in bytes: `VmRSS` now, `VmHWM` at its highest."""
    found = re.search(rf"^{member}:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), flags=re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def forget_peak(process: subprocess.Popen[str]) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def turn(action_id: str) -> dict[str, object]:
    action = {
        "id": action_id,
        "capability_id": "cap:hermes_agent:primary:session_chat_stream",
        "input": {"session_id": "s", "message": "Tell everything.", "max_events": 5_000},
        "mode": "streaming",
    }
    return envelope({"action": action}, message_id=f"msg_{action_id}")


def silent_reader(url: str, action_id: str) -> socket.socket:
    """Follow the action and read nothing of it."""
    address = httpx.URL(url)
    reader = socket.create_connection((address.host, address.port or 80))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lines = [
        f"GET /aip/v1/actions/{action_id}/chunks?follow=true HTTP/1.1",
        "host: aip.test",
        f"authorization: {REQUESTER['authorization']}",
    ]
    reader.sendall("\r\n".join([*lines, "", ""]).encode())
    return reader


async def followed(client: httpx.AsyncClient, action_id: str, *, leaves_after: int | None = None) -> int:
    """Count the chunks that a reader gets, until the end or until it leaves."""
    decoder = sse.Decoder(max_line_bytes=MIB, max_frame_bytes=MIB, max_stream_bytes=None, max_events=None)
    chunks = 0
    async with client.stream("GET", f"/aip/v1/actions/{action_id}/chunks?follow=true&limit=1000") as response:
        assert response.status_code == 200
        async for part in response.aiter_raw():
            chunks += sum(frame.id is not None and frame.id.startswith("chunk:") for frame in decoder.feed(part))
            if leaves_after is not None and chunks >= leaves_after:
                break
    return chunks


@pytest.mark.requirement("conformance:memory:stream")
async def test_a_large_stream_passes_whatever_its_readers_do(
    endpoint: StreamStub, server: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = server
    started, go_on = endpoint.stalled, asyncio.Event()

    def pieces() -> Iterator[bytes | asyncio.Event]:
        started.set()
        yield delta(1024)
        yield go_on
        for _ in range(FRAMES):
            yield delta(STREAM_BYTES // FRAMES)
        yield b'event: run.completed\ndata: {"session_id": "s"}\n\n'

    async with httpx.AsyncClient(base_url=url, headers=REQUESTER, trust_env=False, timeout=120) as client:
        assert (await client.post("/aip/v1/messages", json=turn("act_warm"))).status_code == 200
        assert await followed(client, "act_warm") > 0
        before = memory(process, "VmRSS")
        forget_peak(process)

        endpoint.on("POST", "/chat/stream", StreamReply(pieces=pieces(), headers=EVENT_STREAM))
        async with asyncio.timeout(120):
            running = asyncio.create_task(client.post("/aip/v1/messages", json=turn("act_large")))
            await started.wait()
            with silent_reader(url, "act_large"):
                readers = [
                    asyncio.create_task(followed(client, "act_large")),
                    asyncio.create_task(followed(client, "act_large", leaves_after=100)),
                ]
                go_on.set()
                answer = await running
                whole, part = await asyncio.gather(*readers)
        peak = memory(process, "VmHWM")

    result = answer.json()["body"]["action_result"]
    assert (result["status"], result["output"]["events_omitted"] > FRAMES - 256) == ("completed", True)
    assert (whole, part >= 100) == (FRAMES + 2, True)
    assert peak - before < GROWTH, f"{before // 1024} KiB grew to {peak // 1024} KiB"
