"""The requests that a real endpoint and the embedded one are both asked, in this order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.real.model import Answer
from tests.real.played import Step

__all__ = ["SCRIPT"]

_S: Final = "/api/sessions"
_JOB: Final = {"name": "MARK job", "schedule": "0 3 1 1 *", "prompt": "Summarise the year."}


def _step(name: str, method: str, path: str, body: Any = None, **more: Any) -> Step:
    return Step(name=name, method=method, path=path, body=body, **more)


def _creates() -> Iterator[Step]:
    yield _step("create", "POST", _S, {"id": "MARK-a", "title": "MARK A"})
    yield _step(
        "create: with prompt and model", "POST", _S, {"id": "MARK-b", "system_prompt": "Be brief.", "model": "m"}
    )
    yield _step("create: no id", "POST", _S, {}, keep={"made": "session.id"})
    yield _step("create: session_id for id", "POST", _S, {"session_id": "MARK-c"})
    yield _step("create: id in use", "POST", _S, {"id": "MARK-a"})
    yield _step("create: title in use", "POST", _S, {"id": "MARK-d", "title": "MARK A"})
    yield _step("create: title is cleaned", "POST", _S, {"id": "MARK-e", "title": "  MARK \t E  "})
    for number, refused in enumerate(("a/b", "..", "a\\b", "c:x", " ", "a\nb", "x" * 257)):
        yield _step(f"create: refused id {number}", "POST", _S, {"id": refused})
    yield _step("create: a long title", "POST", _S, {"id": "MARK-f", "title": "MARK" + "t" * 101})
    yield _step("create: a prompt that is no text", "POST", _S, {"id": "MARK-g", "system_prompt": 7})
    yield _step("create: no JSON", "POST", _S, raw=b"{")
    yield _step("create: a list", "POST", _S, [])
    yield _step("create: unknown members", "POST", _S, {"id": "MARK-h", "source": "cli", "user_id": "u"})


def _rows() -> Iterator[Step]:
    yield _step("get", "GET", f"{_S}/MARK-a")
    yield _step("get: nobody", "GET", f"{_S}/MARK-nobody")
    yield _step("messages: none yet", "GET", f"{_S}/MARK-a/messages")
    yield _step("messages: nobody", "GET", f"{_S}/MARK-nobody/messages")
    yield _step("patch: title", "PATCH", f"{_S}/MARK-b", {"title": "MARK B"})
    yield _step("patch: nothing", "PATCH", f"{_S}/MARK-b", {})
    yield _step("patch: title in use", "PATCH", f"{_S}/MARK-b", {"title": "MARK A", "end_reason": "done"})
    yield _step("patch: a long title", "PATCH", f"{_S}/MARK-b", {"title": "t" * 101})
    yield _step("patch: unknown member", "PATCH", f"{_S}/MARK-b", {"title": "MARK Z", "model": "m"})
    yield _step("patch: no title", "PATCH", f"{_S}/MARK-b", {"title": None})
    yield _step("patch: end", "PATCH", f"{_S}/MARK-b", {"end_reason": "case_closed"})
    yield _step("patch: end again", "PATCH", f"{_S}/MARK-b", {"end_reason": "other"})
    yield _step("patch: nobody", "PATCH", f"{_S}/MARK-nobody", {"title": "x"})
    yield _step("patch: no JSON", "PATCH", f"{_S}/MARK-b", raw=b"[")
    yield _step("list: a source nobody has", "GET", f"{_S}?source=MARK")
    yield _step("list: bad numbers", "GET", f"{_S}?source=MARK&limit=-1&offset=x")
    yield _step("list: over its limits", "GET", f"{_S}?source=MARK&limit=1000&offset=2000000")


def _turns() -> Iterator[Step]:
    look = Answer(text="Let me look.", calls=[("no_such_tool", {"where": "there"})])
    yield _step("chat", "POST", f"{_S}/MARK-a/chat", {"message": "What is verified?"})
    yield _step("chat: parts", "POST", f"{_S}/MARK-a/chat", {"input": [{"type": "text", "text": "In parts."}]})
    yield _step("chat: on a closed one", "POST", f"{_S}/MARK-b/chat", {"message": "Still there?"})
    yield _step("chat: nobody", "POST", f"{_S}/MARK-nobody/chat", {"message": "x"})
    yield _step("chat: no message", "POST", f"{_S}/MARK-a/chat", {})
    yield _step("chat: a blank message", "POST", f"{_S}/MARK-a/chat", {"message": "  "})
    yield _step("chat: a number", "POST", f"{_S}/MARK-a/chat", {"message": 7})
    yield _step("chat: a bad system message", "POST", f"{_S}/MARK-a/chat", {"message": "x", "system_message": 7})
    yield _step("chat: a file", "POST", f"{_S}/MARK-a/chat", {"message": [{"type": "file", "file": {}}]})
    image = {"type": "image_url", "image_url": {"url": "ftp://nowhere"}}
    yield _step("chat: a bad image", "POST", f"{_S}/MARK-a/chat", {"message": [image]})
    yield _step("chat: no JSON", "POST", f"{_S}/MARK-a/chat", raw=b"")
    yield _step("stream", "POST", f"{_S}/MARK-a/chat/stream", {"message": "And streamed?"})
    yield _step("stream: nobody", "POST", f"{_S}/MARK-nobody/chat/stream", {"message": "x"})
    yield _step("get: after turns", "GET", f"{_S}/MARK-a")
    yield _step("messages", "GET", f"{_S}/MARK-a/messages")
    yield _step(
        "chat: an unknown tool", "POST", f"{_S}/MARK-c/chat", {"message": "Look."}, model=[look, Answer(text="No.")]
    )
    yield _step("messages: an unknown tool", "GET", f"{_S}/MARK-c/messages")
    yield _step("stream: an unknown tool", "POST", f"{_S}/MARK-e/chat/stream", {"message": "Look."},
                model=[look, Answer(text="No.")])  # fmt: skip
    yield _step("chat: the model fails", "POST", f"{_S}/MARK-h/chat", {"message": "x"}, model=[Answer(status=400)])
    yield _step(
        "stream: the model fails", "POST", f"{_S}/MARK-h/chat/stream", {"message": "x"}, model=[Answer(status=400)]
    )
    yield _step("messages: after a failed model", "GET", f"{_S}/MARK-h/messages")


def _forks() -> Iterator[Step]:
    yield _step("fork", "POST", f"{_S}/MARK-a/fork", {"id": "MARK-a1", "title": "MARK A1"})
    yield _step("fork: its source", "GET", f"{_S}/MARK-a")
    yield _step("fork: its rows", "GET", f"{_S}/MARK-a1/messages")
    yield _step("fork: the source's rows", "GET", f"{_S}/MARK-a/messages")
    yield _step("fork: title of the lineage", "POST", f"{_S}/MARK-a1/fork", {"id": "MARK-a2"})
    yield _step("fork: id in use", "POST", f"{_S}/MARK-e/fork", {"id": "MARK-a"})
    yield _step("fork: nobody", "POST", f"{_S}/MARK-nobody/fork", {})
    yield _step("fork: no body", "POST", f"{_S}/MARK-e/fork", raw=b"")
    yield _step("fork: a blank id", "POST", f"{_S}/MARK-e/fork", {"id": " "})
    yield _step("fork: title in use", "POST", f"{_S}/MARK-e/fork", {"id": "MARK-e1", "title": "MARK A"})
    yield _step("fork: its source after a title in use", "GET", f"{_S}/MARK-e")
    yield _step("fork: its child after a title in use", "GET", f"{_S}/MARK-e1")
    yield _step("fork: an id with a slash", "POST", f"{_S}/MARK-h/fork", {"id": "MARK/h1", "title": "MARK H1"})
    yield _step("delete", "DELETE", f"{_S}/MARK-a1")
    yield _step("delete: again", "DELETE", f"{_S}/MARK-a1")
    yield _step("delete: its child has no parent now", "GET", f"{_S}/MARK-a2")


def _frame() -> Iterator[Step]:
    yield _step("health", "GET", "/health")
    yield _step("models", "GET", "/v1/models")
    yield _step("no such path", "GET", "/api/nothing")
    yield _step("no such method", "PUT", _S)
    yield _step("HEAD", "HEAD", _S)
    yield _step("a trailing slash", "GET", f"{_S}/")
    yield _step("another key", "GET", _S, headers={"Authorization": "Bearer not-the-key-of-anyone"})
    yield _step("a small bearer", "GET", _S, headers={"Authorization": "bearer x"})
    yield _step("an origin", "GET", "/health", headers={"Origin": "http://app.test"})
    yield _step("too large", "POST", _S, raw=b" " * 10_000_001)


def _v1() -> Iterator[Step]:
    words = {"messages": [{"role": "user", "content": "MARK by completions."}]}
    yield _step("completions", "POST", "/v1/chat/completions", words)
    yield _step("completions: streamed", "POST", "/v1/chat/completions", {**words, "stream": True})
    session = {"X-Hermes-Session-Id": "MARK-v"}
    yield _step("completions: a session", "POST", "/v1/chat/completions", words, headers=session)
    yield _step("completions: its rows", "GET", f"{_S}/MARK-v/messages")
    yield _step("completions: a bad session", "POST", "/v1/chat/completions", words,
                headers={"X-Hermes-Session-Id": "../x"})  # fmt: skip
    yield _step("completions: a long session key", "POST", "/v1/chat/completions", words,
                headers={"X-Hermes-Session-Key": "k" * 257})  # fmt: skip
    yield _step("completions: a list", "POST", "/v1/chat/completions", [])
    yield _step("completions: no messages", "POST", "/v1/chat/completions", {})
    yield _step("completions: no JSON", "POST", "/v1/chat/completions", raw=b"{")
    yield _step("completions: the model fails", "POST", "/v1/chat/completions", words, model=[Answer(status=400)])
    yield _step("responses", "POST", "/v1/responses", {"input": "MARK by responses."}, keep={"response": "id"})
    yield _step("response", "GET", "/v1/responses/{response}")
    yield _step("responses: streamed", "POST", "/v1/responses", {"input": "MARK streamed.", "stream": True})
    yield _step("responses: the model fails", "POST", "/v1/responses", {"input": "x"}, model=[Answer(status=400)])
    yield _step("responses: a conversation", "POST", "/v1/responses", {"input": "x", "conversation": "MARK"})
    yield _step("responses: not stored", "POST", "/v1/responses", {"input": "x", "store": False})
    yield _step("responses: no input", "POST", "/v1/responses", {})
    yield _step(
        "responses: unknown previous", "POST", "/v1/responses", {"input": "x", "previous_response_id": "resp_x"}
    )
    yield _step("response: delete", "DELETE", "/v1/responses/{response}")
    yield _step("response: nobody", "GET", "/v1/responses/{response}")
    yield _step("run", "POST", "/v1/runs", {"input": "By a run.", "session_id": "MARK-r"}, keep={"run": "run_id"})
    yield _step("run: events", "GET", "/v1/runs/{run}/events")
    yield _step("run: status", "GET", "/v1/runs/{run}", until=("status", "completed"))
    failing = {"input": "Try.", "session_id": "MARK-q"}
    yield _step("run: of a model that fails", "POST", "/v1/runs", failing, keep={"failed": "run_id"},
                model=[Answer(status=400)])  # fmt: skip
    yield _step("run: events of a model that fails", "GET", "/v1/runs/{failed}/events")
    yield _step("run: status of a model that fails", "GET", "/v1/runs/{failed}", until=("status", "failed"))
    yield _step("run: stop after its end", "POST", "/v1/runs/{run}/stop")
    yield _step("run: approve after its end", "POST", "/v1/runs/{run}/approval", {"choice": "once"})
    yield _step("run: a bad choice", "POST", "/v1/runs/{run}/approval", {"choice": "maybe"})
    yield _step("run: no input", "POST", "/v1/runs", {})
    yield _step("run: nobody", "GET", "/v1/runs/run_nobody")
    yield _step("run: approve nobody", "POST", "/v1/runs/run_nobody/approval", {"choice": "deny"})
    yield _step("run: stop nobody", "POST", "/v1/runs/run_nobody/stop")


def _jobs() -> Iterator[Step]:
    yield _step("job: create", "POST", "/api/jobs", _JOB, keep={"job": "job.id"})
    yield _step("job: get", "GET", "/api/jobs/{job}")
    yield _step("job: patch", "PATCH", "/api/jobs/{job}", {"name": "MARK changed"})
    yield _step("job: patch nothing known", "PATCH", "/api/jobs/{job}", {"unknown": 1})
    yield _step("job: pause", "POST", "/api/jobs/{job}/pause")
    yield _step("job: resume", "POST", "/api/jobs/{job}/resume")
    yield _step("job: bad schedule", "POST", "/api/jobs", {**_JOB, "schedule": "sometimes"})
    yield _step("job: no name", "POST", "/api/jobs", {**_JOB, "name": ""})
    yield _step("job: a bad id", "GET", "/api/jobs/nobody")
    yield _step("job: nobody", "GET", "/api/jobs/0ddaaccff246")
    yield _step("job: delete", "DELETE", "/api/jobs/{job}")


SCRIPT: Final = (*_creates(), *_rows(), *_turns(), *_forks(), *_frame(), *_v1(), *_jobs())
