"""A small AIP server on a real loopback socket: answers by a function, keeps what it was asked."""

from __future__ import annotations

import json
import queue
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Answer", "Request", "StubServer", "running_stub"]

WAIT_S = 30


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def path(self) -> str:
        return self.target.split("?", 1)[0]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What goes back. body: bytes as they are, else JSON.

    fate: `never` keeps the socket open, `cut` closes it; `held` sends, then keeps it open; `torn` closes in the body.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    fate: Literal["sent", "never", "cut", "held", "torn"] = "sent"


class StubServer:
    """answer: called for every request. requests: all that arrived, in order."""

    def __init__(self, url: str, answer: Callable[[Request], Answer]) -> None:
        self.url = url
        self.answer = answer
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._arrived: queue.Queue[Request] = queue.Queue()

    def record(self, request: Request) -> None:
        self.requests.append(request)
        self._arrived.put(request)

    def wait_for_request(self) -> Request:
        """Return the next request that nobody waited for yet; raises queue.Empty after half a minute."""
        return self._arrived.get(timeout=WAIT_S)

    @property
    def posts(self) -> list[Request]:
        return [request for request in self.requests if request.method == "POST"]


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        stub: StubServer = self.server.stub  # type: ignore[attr-defined]
        first = self.rfile.read(1)
        if first == b"\x16":
            return  # the beginning of TLS, in which a line may never end
        line = (first + self.rfile.readline()).decode("latin-1")
        if not line.strip():
            return
        method, target, _ = line.split(" ", 2)
        headers = dict(iter(self._header, ("", "")))
        body = self.rfile.read(int(headers.get("content-length", "0")))
        request = Request(method=method, target=target, headers=headers, body=body)
        stub.record(request)
        answer = stub.answer(request)
        if answer.fate == "never":
            stub.closing.wait(WAIT_S * 3)
        if answer.fate in ("never", "cut"):
            return
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        head = {"Content-Type": "application/json", "Connection": "close"}
        head |= {} if answer.fate == "held" else {"Content-Length": str(len(content) + (answer.fate == "torn"))}
        lines = [f"HTTP/1.1 {answer.status} Stub", *(f"{n}: {v}" for n, v in {**head, **answer.headers}.items())]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
        if answer.fate == "held":
            stub.closing.wait(WAIT_S * 3)

    def _header(self) -> tuple[str, str]:
        name, _, value = self.rfile.readline().decode("latin-1").partition(":")
        return name.strip().lower(), value.strip()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is part of the test."""


@contextmanager
def running_stub(answer: Callable[[Request], Answer]) -> Iterator[StubServer]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        stub = StubServer(f"http://127.0.0.1:{server.server_address[1]}", answer)
        server.stub = stub  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield stub
        finally:
            stub.closing.set()
            server.shutdown()
            thread.join()
