"""The model behind a real Hermes: an OpenAI-compatible server on loopback that says what a test tells it to.

What is not told is answered with an echo. Hermes streams from its model whatever its own client asked for.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

__all__ = ["Answer", "ScriptedModel", "scripted_model"]

NAME: Final = "scripted-model"
_PIECE: Final = 24
_ECHOED: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One answer. calls: (tool name, arguments) that it asks for. status: an HTTP error in place of a reply. cut: the
    connection ends after the first piece. until: the reply waits for it, before its first piece. prompt_tokens: what it
    says that the question took.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    status: int = 200
    cut: bool = False
    until: threading.Event | None = None
    prompt_tokens: int = 10


@dataclass
class ScriptedModel:
    """next: what is answered next, in order. asked: the bodies of the requests, oldest first."""

    url: str
    context_length: int
    next: deque[Answer] = field(default_factory=deque)
    asked: list[dict[str, Any]] = field(default_factory=list)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once for each answer that has begun to wait for its `until`."""

    def answer_to(self, body: dict[str, Any]) -> Answer:
        """Take what comes next; an echo of the last user message, its beginning, where nothing was told."""
        self.asked.append(body)
        if self.next:
            return self.next.popleft()
        asked = [m.get("content") for m in body.get("messages", []) if m.get("role") == "user"]
        return Answer(text=f"You said: {_text(asked[-1])[:_ECHOED] if asked else ''}")


@contextmanager
def scripted_model(*, context_length: int = 131_072) -> Iterator[ScriptedModel]:
    """Yield a model that serves until the block ends."""
    model = ScriptedModel(url="", context_length=context_length)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            entry = {"id": NAME, "object": "model", "context_length": model.context_length}
            _json(self, 200, {"object": "list", "data": [entry]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            with suppress(BrokenPipeError, ConnectionResetError):  # who asked has gone
                _reply(self, model, model.answer_to(body), stream=bool(body.get("stream")))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _reply(handler: BaseHTTPRequestHandler, model: ScriptedModel, answer: Answer, *, stream: bool) -> None:
    if answer.until is not None:
        model.waiting.release()
        answer.until.wait(60)
    if answer.status != 200:
        _json(handler, answer.status, {"error": {"message": f"told to answer {answer.status}", "type": "scripted"}})
        return
    calls = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(answer.calls)
    ]
    reason = "tool_calls" if calls else "stop"
    said = len(answer.text) // 4 + 1
    usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": said}
    usage["total_tokens"] = usage["prompt_tokens"] + said
    if not stream:
        message = {"role": "assistant", "content": answer.text, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        _json(
            handler, 200, {"id": "c1", "object": "chat.completion", "model": NAME, "choices": [choice], "usage": usage}
        )
        return
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    pieces += [{"content": answer.text[at : at + _PIECE]} for at in range(0, len(answer.text), _PIECE)]
    for delta in pieces:
        _event(handler, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if answer.cut and "role" not in delta:
            handler.close_connection = True
            return
    if calls:
        _event(handler, {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]})
    _event(handler, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
    handler.wfile.write(b"data: [DONE]\n\n")
    handler.close_connection = True


def _event(handler: BaseHTTPRequestHandler, members: Mapping[str, Any]) -> None:
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": NAME, **members}
    handler.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    handler.wfile.flush()


def _json(handler: BaseHTTPRequestHandler, status: int, body: Mapping[str, Any]) -> None:
    data = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
