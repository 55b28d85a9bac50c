"""A transcript larger than what the connector accepts: refused with its next step, in bounded memory, read in pages."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.embedded_endpoint import KEY, endpoint, served
from tests.support.hermes_streams import StreamReply, StreamStub
from tests.support.hermes_stub import row_of
from tests.support.processes import start, stop
from tests.support.server_serving import REQUESTER, envelope, written_settings

MIB = 1 << 20
MESSAGES = 20
MEMORY = 100 * MIB
"""Of the whole server process, at its highest."""


@contextmanager
def server(folder: Path, endpoint_url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    settings = written_settings(folder, endpoint_url=endpoint_url)
    (folder / "hermes.key").write_text(KEY, encoding="ascii")
    process = start(["serve", "--config", str(settings.path)], log=folder / "log")
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["aip_url"]
    finally:
        assert stop(process) == 0


def peak(process: subprocess.Popen[str]) -> int:
    """Return the most memory that the process ever held, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), flags=re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


async def asked(url: str, action_id: str, **page: int) -> dict[str, Any]:
    """Return the result of a session_messages action."""
    action = {
        "id": action_id,
        "capability_id": "cap:hermes_agent:primary:session_messages",
        "input": {"session_id": "s", **page},
        "mode": "sync",
    }
    async with httpx.AsyncClient(base_url=url, headers=REQUESTER, trust_env=False, timeout=60) as client:
        answer = await client.post("/aip/v1/messages", json=envelope({"action": action}, message_id=f"msg_{action_id}"))
    result: dict[str, Any] = answer.json()["body"]["action_result"]
    return result


def requires_the_size_code(result: dict[str, Any]) -> None:
    error = result["error"]
    assert (result["status"], error["code"]) == ("failed", "connector.hermes_agent.invalid_response")
    assert (error["details"]["reason"], error["details"]["uncertain_outcome"]) == ("too_large", False)
    assert "`s`" in error["message"]
    assert "Ask for less" in error["message"]


@pytest.mark.requirement("hermes:transport:large-transcript")
async def test_a_transcript_over_the_limit_is_refused_and_can_be_read_in_pages(tmp_path: Path) -> None:
    texts = [f"{number} " + "x" * MIB for number in range(MESSAGES)]
    async with served(tmp_path) as hermes:
        await hermes.create("s")
        await hermes.db.append_messages_batch("s", [{"role": "user", "content": text} for text in texts])
        with server(tmp_path, f"{hermes.client.base_url}/") as (process, url):
            requires_the_size_code(await asked(url, "act_whole"))
            assert peak(process) < MEMORY
            read: list[str] = []
            while (page := await asked(url, f"act_{len(read)}", limit=4, offset=len(read)))["output"]["data"]:
                read += [message["content"] for message in page["output"]["data"]]
                assert page["output"]["has_more"] is (len(read) < MESSAGES)
            assert read == texts


@pytest.mark.requirement("hermes:transport:large-transcript")
async def test_a_transcript_of_unannounced_size_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    async with StreamStub([row_of("s")]) as stub:
        pieces: Iterator[bytes] = iter([b'{"data": [', *[b'"' + b"x" * MIB + b'",' for _ in range(MESSAGES)], b"1]}"])
        stub.on("GET", "/messages", StreamReply(pieces=pieces, headers={"content-type": "application/json"}))
        with server(tmp_path, stub.base_url) as (process, url):
            requires_the_size_code(await asked(url, "act_whole"))
            assert peak(process) < MEMORY


PAGES = [
    ("limit=2", (2, 0, True), ["0", "1"]),
    ("limit=2&offset=3", (2, 3, False), ["3", "4"]),
    ("offset=1", (50, 1, False), ["1", "2", "3", "4"]),
    ("limit=5", (5, 0, False), ["0", "1", "2", "3", "4"]),
    ("limit=201", (200, 0, False), ["0", "1", "2", "3", "4"]),
    ("limit=-1", (50, 0, False), ["0", "1", "2", "3", "4"]),
    ("limit=abc&offset=4", (50, 4, False), ["4"]),
    ("limit=1.5&offset=true", (50, 0, False), ["0", "1", "2", "3", "4"]),
    ("limit=1&offset=5", (1, 5, False), []),
    ("limit=0", (0, 0, True), []),
]


@pytest.mark.requirement("embedded:messages:pages")
@pytest.mark.parametrize(("query", "place", "contents"), PAGES)
async def test_messages_are_read_in_pages(
    tmp_path: Path, query: str, place: tuple[int, int, bool], contents: list[str]
) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        await hermes.db.append_messages_batch("s", [{"role": "user", "content": str(number)} for number in range(5)])
        whole = (await hermes.client.get("/api/sessions/s/messages?other=1")).json()
        page = (await hermes.client.get(f"/api/sessions/s/messages?{query}")).json()
    assert (whole.keys(), len(whole["data"])) == ({"object", "session_id", "data"}, 5)
    assert page.keys() == whole.keys() | {"limit", "offset", "total", "has_more"}
    assert (page["limit"], page["offset"], page["has_more"], page["total"]) == (*place, 5)
    assert [message["content"] for message in page["data"]] == contents
    assert all(message in whole["data"] for message in page["data"])
