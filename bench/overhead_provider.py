"""The provider behind both sides of bench/overhead.py: two routes of Hermes, fixed work, and a count of what came.

Prints its port on stdout and serves until its stdin closes. `GET /count` tells {"reads": n, "creates": n}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

ROW: Final[dict[str, Any]] = {
    "id": "s1",
    "source": "api_server",
    "model": "hermes-agent",
    "title": "A session",
    "started_at": 1796071433.5,
    "ended_at": None,
    "end_reason": None,
    "message_count": 2,
    "tool_call_count": 0,
    "parent_session_id": None,
    "has_system_prompt": False,
}


class Provider(asyncio.Protocol):
    """One connection, kept alive."""

    counts: Final = {"reads": 0, "creates": 0}

    def __init__(self) -> None:
        self._kept = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._kept += data
        while (end := self._kept.find(b"\r\n\r\n")) >= 0:
            head = self._kept[:end].lower()
            at = head.find(b"\r\ncontent-length:")
            length = 0 if at < 0 else int(head[at + 17 :].partition(b"\r\n")[0])
            if len(self._kept) < end + 4 + length:
                return
            body, self._kept = self._kept[end + 4 : end + 4 + length], self._kept[end + 4 + length :]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        status = 200
        answer: dict[str, Any] = {"object": "hermes.session", "session": ROW}
        if head.startswith(b"get /count"):
            answer = dict(self.counts)
        elif head.startswith(b"post"):
            self.counts["creates"] += 1
            status, answer = 201, {"object": "hermes.session", "session": {**ROW, **json.loads(body)}}
        else:
            self.counts["reads"] += 1
        data = json.dumps(answer).encode()
        self._transport.write(
            b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(data))
            + data
        )


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
    async with server:
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
