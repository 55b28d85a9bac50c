"""A Hermes endpoint in a process of its own that keeps a log of what changes something: one line per such request.

A line is written when the request has arrived, before it is answered, so it says what the provider saw, whoever died
meanwhile. `python -m tests.support.counting_hermes LOG` serves until stdin closes. A test puts a session there with
`PUT /rows/<id>`, which is no route of Hermes and is not logged.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx

from aip_hermes.cli.ready import announce, stop_with_stdin
from tests.support.hermes_streams import StreamStub
from tests.support.hermes_stub import Arrived, Reply, reply_json, row_of

__all__ = ["CountingHermes", "Provider", "running_provider"]

_MARKS = ("id", "message", "title")


class CountingHermes(StreamStub):
    """A StreamStub that writes what changes something into `log` and remembers no request."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._log = log

    def answer(self, request: Arrived) -> Reply:
        self.arrived.clear()
        if request.method == "GET":
            return super().answer(request)
        if request.method == "PUT":
            return self._put(request.segments[-1])
        body = json.loads(request.body) if request.body else {}
        line = {"method": request.method, "target": request.target, "marks": [body[m] for m in _MARKS if m in body]}
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()
        return super().answer(request)

    def _put(self, session_id: str) -> Reply:
        self.rows[session_id] = row_of(session_id)
        return reply_json({})


@dataclass(frozen=True, kw_only=True)
class Provider:
    """The endpoint as a test sees it."""

    url: str
    log: Path

    def hold(self, session_id: str) -> None:
        """Let a session exist."""
        httpx.put(f"{self.url}rows/{session_id}", trust_env=False).raise_for_status()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the log."""
        with self.log.open(encoding="utf-8") as log:
            yield from map(json.loads, log)

    def seen(self, mark: str) -> int:
        """Return how many requests that change something bore a mark: in the path, or as id, message or title."""
        return sum(mark in line["target"].split("/") or mark in line["marks"] for line in self.lines())


@contextmanager
def running_provider(folder: Path) -> Iterator[Provider]:
    """Run the endpoint on a free port; it ends with the block, or with the test's process."""
    log = folder / "provider.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.counting_hermes", str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield Provider(url=json.loads(process.stdout.readline())["url"], log=log)
    finally:
        process.communicate(timeout=10)


async def _run(log: Path) -> None:
    stop = asyncio.Event()
    await stop_with_stdin(stop)
    with log.open("a", encoding="utf-8") as lines:
        async with CountingHermes(lines) as endpoint:
            announce({"url": endpoint.base_url})
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1])))
