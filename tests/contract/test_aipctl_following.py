"""`aipctl` follows, starts and cancels actions: the real command over a real server, and every end of a stub's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from aip_hermes.cli.aipctl.command import aipctl
from aip_hermes.contract.handler import Answer as ProviderAnswer
from aip_hermes.contract.handler import Chunk, Publish
from tests.support import client_answers as answers
from tests.support.client_command import aipctl_process, run_aipctl
from tests.support.client_streams import TOKEN, chunk, event, page, terminal
from tests.support.client_stub_server import Answer, Request, running_stub
from tests.support.runtime_connector import ScriptedConnector, capability
from tests.support.server_streams import streaming_server

ACTION = answers.ACTION_ID
CHAT = capability("session_chat")
INPUT = '{"session_id": "s", "message": "hi"}'
STREAM = {"Content-Type": "text/event-stream"}
ENV = {"GETAIP_NATIVE_BEARER_TOKEN": TOKEN}


class Turn:
    """Says words; each waits for a `let`."""

    def __init__(self, *words: str) -> None:
        self.words = words or ("word 0", "word 1", "word 2")
        self.let = asyncio.Semaphore(0)

    async def __call__(self, publish: Publish) -> ProviderAnswer:
        for word in self.words:
            await self.let.acquire()
            await publish(Chunk(kind="data", data={}, text=word))
        return ProviderAnswer(output={"text": "".join(self.words)})


@asynccontextmanager
async def _serving(tmp_path: Path, turn: Turn, **members: Any) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    connector = ScriptedConnector(
        **{"tenant": "local", "streaming": frozenset({"session_chat"}), "stream": turn, **members}
    )
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        yield str(client.base_url), client


def _call(url: str, *options: str, mode: str = "streaming") -> list[str]:
    return ["action", "call", url, CHAT, "--input", INPUT, "--action-id", ACTION, "--mode", mode, *options]


def _follow(url: str, *options: str) -> list[str]:
    return ["action", "events", url, ACTION, "--include-chunks", "--follow", *options]


async def _lines(process: asyncio.subprocess.Process, until: Callable[[Any], bool] | None = None) -> list[Any]:
    """Read documents up to one that `until` accepts, or to the end."""
    read: list[Any] = []
    assert process.stdout is not None
    async for line in process.stdout:
        assert line.endswith(b"\n")
        read.append(json.loads(line))
        if until is not None and until(read[-1]):
            break
    return read


def _chunks(documents: list[Any]) -> list[int]:
    return [document["chunk"]["sequence"] for document in documents if "chunk" in document]


async def _result(client: httpx.AsyncClient) -> str:
    while True:
        answer = (await client.get(f"/aip/v1/actions/{ACTION}/result")).json()
        if "action_result" in answer:
            return str(answer["action_result"]["status"])


@pytest.mark.requirement("aipctl:follow:json-lines", "aipctl:follow:exit-codes", "client:follow:as-it-happens")
async def test_a_call_prints_each_frame_before_the_next_is_made(tmp_path: Path) -> None:
    turn = Turn()
    turn.let.release()

    def more(document: Any) -> bool:
        if "chunk" in document:
            turn.let.release()
        return False

    async with _serving(tmp_path, turn) as (url, _), aipctl_process(*_call(url, "--follow"), env=ENV) as process:
        documents = await _lines(process, more)
        _, stderr = await process.communicate()
    assert (process.returncode, stderr) == (0, b"")
    assert _chunks(documents) == [0, 1, 2]
    assert documents[-2] == {"terminal": True, "action_id": ACTION}
    assert documents[-1]["body"]["action_result"]["status"] == "completed"


@pytest.mark.requirement("aipctl:follow:leaves-nothing-behind")
async def test_a_killed_follower_leaves_the_action_and_a_second_one_gets_every_chunk_once(tmp_path: Path) -> None:
    turn = Turn()
    turn.let.release()
    async with _serving(tmp_path, turn) as (url, client):
        async with aipctl_process(*_call(url, "--follow"), env=ENV) as process:
            await _lines(process, lambda document: "chunk" in document)
            process.kill()
            await process.wait()
        async with aipctl_process(*_follow(url), env=ENV) as second:
            seen = await _lines(second, lambda document: "chunk" in document)
            turn.let.release()
            turn.let.release()
            seen += await _lines(second)
            _, stderr = await second.communicate()
        assert await _result(client) == "completed"
        async with aipctl_process(*_follow(url), env=ENV) as third:
            replayed = await _lines(third)
    assert _chunks(seen) == _chunks(replayed) == [0, 1, 2]
    assert (second.returncode, replayed[-1]) == (0, {"terminal": True, "action_id": ACTION})
    assert stderr.decode() == f"next: aipctl action result {url} {ACTION}\n"


@pytest.mark.requirement("aipctl:follow:leaves-nothing-behind", "aipctl:exit:interrupt")
@pytest.mark.parametrize("command", ["call", "events"])
async def test_an_interrupt_says_how_to_follow_on_and_how_to_stop(tmp_path: Path, command: str) -> None:
    turn = Turn()
    turn.let.release()
    async with _serving(tmp_path, turn) as (url, client):
        async with aipctl_process(*_call(url, "--follow"), env=ENV) as calling:
            await _lines(calling, lambda document: "chunk" in document)
            async with aipctl_process(*_follow(url, "--kind", "aip.stream.chunk"), env=ENV) as following:
                process = calling if command == "call" else following
                position = (await _lines(process, lambda document: "next_cursor" in document))[-1]["next_cursor"]
                process.send_signal(signal.SIGINT)
                _, stderr = await process.communicate()
        for _ in range(2):
            turn.let.release()
        assert await _result(client) == "completed"
    said = stderr.decode()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert f"aipctl action cancel {url} {ACTION}" in said
    if command == "events":
        options = "--kind aip.stream.chunk --include-chunks --follow"
        assert f"to follow on: aipctl action events {url} {ACTION} {options} --cursor {position}\n" in said
    else:
        assert f"to follow it: aipctl action events {url} {ACTION} --include-chunks --follow\n" in said
        assert f"next: aipctl action status {url} {ACTION}\n" in said


HOSTILE = ("safe\x1b[2J\x9b31m", "\u202egnp\x07\nnext: aipctl action cancel\r\n", "\ttab", "\ud83d smile 🙂")


@pytest.mark.requirement("aipctl:follow:live-text", "aipctl:output:neutralised", "aipctl:follow:json-lines")
async def test_hostile_text_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    body = page("c1", event(1), *(chunk(n, text) for n, text in enumerate(HOSTILE)), chunk(9, "x", kind="thought"))
    with running_stub(lambda _: Answer(body=body + terminal(), headers=STREAM)) as stub:
        ours, theirs = os.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            async with asyncio.timeout(30), aipctl_process(*_follow(stub.url), stderr=theirs) as process:
                os.close(theirs)
                documents = await _lines(process)
                await process.wait()
            shown = _everything(screen)
        plain = run_aipctl(*_follow(stub.url))
    assert [d["chunk"]["part"]["text"] for d in documents if "chunk" in d][:4] == list(HOSTILE)
    assert shown.decode().splitlines() == [
        r"  | safe\x1b[2J\x9b31m\u202egnp\x07",
        "  | next: aipctl action cancel",
        r"  | \x09tab\ud83d smile 🙂",
        f"next: aipctl action result {stub.url} {ACTION}",
    ]
    for unsafe in ("\x1b", "\x9b", "\u202e", "\x07"):
        assert unsafe.encode() not in plain.stdout
    assert b"  | " not in plain.stderr


def _everything(screen: Any) -> bytes:
    shown = b""
    try:
        while part := screen.read(4096):
            shown += part
    except OSError:
        pass  # the other side is closed
    return shown


def _stub(reply: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """Answer the call by `reply`, and let its stream end at once."""
    stream = page("c1", event(1), chunk(0, "word")) + terminal("c1")

    def answer(request: Request) -> Answer:
        return Answer(body=stream, headers=STREAM) if request.method == "GET" else reply(request)

    return answer


def _reply(body: dict[str, Any]) -> Callable[[Request], Answer]:
    return lambda request: answers.reply_with(body, request)


@pytest.mark.requirement("aipctl:follow:exit-codes", "aipctl:follow:json-lines")
@pytest.mark.parametrize(
    ("reply", "plain", "on_status", "has_result"),
    [
        pytest.param(_reply(answers.completed({})), 0, 0, True, id="completed"),
        pytest.param(_reply(answers.failed("action.input_schema_invalid")), 0, 3, True, id="validation"),
        pytest.param(_reply(answers.failed("connector.hermes_agent.not_found")), 1, 1, True, id="connector"),
        pytest.param(_reply(answers.failed("connector.hermes_agent.x", uncertain=True)), 4, 4, True, id="uncertain"),
        pytest.param(_reply(answers.pending()), 0, 5, True, id="pending"),
        pytest.param(_reply(answers.action_result("cancelled")), 0, 6, True, id="cancelled"),
        pytest.param(lambda _: answers.refused("resource.not_found", "permanent", 400), 1, 1, False, id="refused"),
        pytest.param(lambda _: Answer(status=502, body=b"<html>"), 4, 4, False, id="html 502"),
        pytest.param(lambda _: Answer(fate="cut"), 4, 4, False, id="lost answer"),
    ],
)
def test_a_followed_call_ends_as_its_result(
    reply: Callable[[Request], Answer], plain: int, on_status: int, has_result: bool
) -> None:
    for options, code in (((), plain), (("--fail-on-status",), on_status)):
        with running_stub(_stub(reply)) as stub:
            done = CliRunner().invoke(aipctl, _call(stub.url, "--follow", *options))
        assert done.exit_code == code
        assert [request.method for request in stub.requests].count("POST") == 1
        documents = [json.loads(line) for line in done.stdout.splitlines()]
        replied = ["action_result" in document.get("body", {}) for document in documents]
        assert replied.count(True) == (1 if has_result else 0)
        assert not has_result or replied[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.requirement("aipctl:follow:exit-codes")
def test_following_that_fails_does_not_end_the_call() -> None:
    def answer(request: Request) -> Answer:
        return Answer(body=b"<html>") if request.method == "GET" else answers.reply_with(answers.completed({}), request)

    with running_stub(answer) as stub:
        done = CliRunner().invoke(aipctl, _call(stub.url, "--follow"))
    assert done.exit_code == 0
    assert json.loads(done.stdout)["body"]["action_result"]["status"] == "completed"
    assert done.stderr.startswith("no longer followed: AIP response has no `event stream`")


def test_following_needs_a_stream() -> None:
    done = CliRunner().invoke(aipctl, ["action", "call", "http://127.0.0.1:9", "cap:x", "--follow"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--follow needs --mode streaming" in done.stderr


@pytest.mark.requirement("aipctl:follow:json-lines", "client:follow:bounded-tries", "client:failure:told-apart")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answers.refused("action.not_found", "permanent", 400), "never received, or of another tenant"),
        (answers.refused("stream.cursor_expired", "permanent", 400), "begin again without --cursor"),
        (Answer(status=502, body=b"<html>"), "HTTP 502"),
        (Answer(body={"action_events": {}}), "no `event stream`"),
    ],
)
def test_what_can_not_be_followed_is_an_error(answer: Answer, said: str) -> None:
    with running_stub(lambda _: answer) as stub:
        done = CliRunner().invoke(aipctl, _follow(stub.url))
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


@pytest.mark.requirement("client:failure:told-apart")
@pytest.mark.parametrize("command", ["events --follow", "events", "cancel"])
def test_without_a_server_nothing_is_printed(command: str) -> None:
    verb, *options = command.split()
    done = CliRunner().invoke(aipctl, ["action", verb, "http://127.0.0.1:9", ACTION, *options])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "refused\n  next: is the server running?" in done.stderr


@pytest.mark.requirement("client:follow:bounded-tries", "aipctl:follow:leaves-nothing-behind")
def test_giving_up_names_the_command_that_follows_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from aip_hermes.client import streams

    monkeypatch.setattr(streams, "_LONGEST_WAIT_S", 0)
    with running_stub(lambda _: Answer(body=page("c 1", chunk(0)), headers=STREAM, fate="torn")) as stub:
        done = CliRunner().invoke(aipctl, _follow(stub.url))
        assert len(stub.requests) == 8
    assert done.exit_code == 1
    assert _chunks([json.loads(line) for line in done.stdout.splitlines()]) == [0]
    command = f"aipctl action events {stub.url} {ACTION} --include-chunks --follow --cursor 'c 1'"
    assert f"  cursor: c 1\n  next: {command}\n" in done.stderr


@pytest.mark.requirement("aipctl:commands:routes")
@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("", ""),
        (
            "--cursor c --limit 5 --kind a --kind b --include-chunks",
            "?cursor=c&limit=5&include_chunks=true&kinds=a%2Cb",
        ),
    ],
)
def test_a_page_of_events_is_printed_as_it_is(options: str, query: str) -> None:
    read = {"action_events": {"action_id": ACTION, "events": [], "cursor": "aev_cursor_0_none", "terminal": False}}
    with running_stub(lambda _: Answer(body=read)) as stub:
        done = CliRunner().invoke(aipctl, ["action", "events", stub.url, ACTION, *options.split()])
    assert (done.exit_code, json.loads(done.stdout), done.stderr) == (0, read, "")
    assert [request.target for request in stub.requests] == [f"/aip/v1/actions/{ACTION}/events{query}"]


@pytest.mark.requirement("aipctl:async:what-next", "aipctl:exit:codes")
async def test_an_asynchronous_call_says_how_to_go_on(tmp_path: Path) -> None:
    turn = Turn("word")
    members = {"streaming": frozenset(), "queueing": frozenset({"session_chat"})}
    async with _serving(tmp_path, turn, **members) as (url, client):
        async with aipctl_process(*_call(url, "--fail-on-status", mode="async"), env=ENV) as process:
            stdout, stderr = await process.communicate()
        async with aipctl_process(*_follow(url), env=ENV) as following:
            turn.let.release()
            seen = await _lines(following)
        assert await _result(client) == "completed"
    assert process.returncode == 5
    assert json.loads(stdout)["body"]["ack"]["status"] == "queued"
    for command in (
        f"aipctl action status {url} {ACTION}",
        f"aipctl action events {url} {ACTION} --include-chunks --follow",
        f"aipctl action cancel {url} {ACTION}",
    ):
        assert command in stderr.decode()
    assert seen[-1] == {"terminal": True, "action_id": ACTION}


@pytest.mark.requirement("aipctl:async:what-next")
@pytest.mark.parametrize("state", ["queued", "running", "streaming", "cancelling"])
def test_a_status_of_what_goes_on_says_how_to_go_on(state: str) -> None:
    status = {"action_status": {"action_id": ACTION, "state": state, "updated_at": "2030-01-01T00:00:01Z"}}
    with running_stub(lambda _: Answer(body=status)) as stub:
        done = CliRunner().invoke(aipctl, ["action", "status", stub.url, ACTION])
    assert (done.exit_code, json.loads(done.stdout)) == (0, status)
    expected = "action result" if state == "cancelling" else "action cancel"
    assert f"aipctl {expected} {stub.url} {ACTION}" in done.stderr


@pytest.mark.requirement("aipctl:cancel:result")
async def test_cancelling_a_running_turn(tmp_path: Path) -> None:
    turn = Turn()
    turn.let.release()
    async with (
        _serving(tmp_path, turn) as (url, _),
        aipctl_process(*_call(url, "--follow", "--fail-on-status"), env=ENV) as calling,
    ):
        await _lines(calling, lambda document: "chunk" in document)
        async with aipctl_process("action", "cancel", url, ACTION, env=ENV) as cancelling:
            stdout, stderr = await cancelling.communicate()
        rest = await _lines(calling)
        await calling.wait()
    assert (cancelling.returncode, calling.returncode) == (4, 4)
    assert json.loads(stdout)["action_result"]["status"] == "cancelled"
    assert b"the provider was told to stop: asked once" in stderr
    assert rest[-1]["body"]["action_result"]["status"] == "cancelled"


@pytest.mark.requirement("aipctl:follow:no-text")
def test_a_turn_without_text_is_said_to_have_none() -> None:
    output = {"stream": True, "text": "", "terminal": True, "events": []}
    with running_stub(_stub(_reply(answers.completed(output)))) as stub:
        done = CliRunner().invoke(aipctl, _call(stub.url, "--follow"))
    assert done.exit_code == 0
    assert "(no assistant text)" in done.stderr


@pytest.mark.requirement("aipctl:follow:leaves-nothing-behind", "aipctl:output:unwritable")
async def test_who_stops_reading_is_told_that_the_action_goes_on(tmp_path: Path) -> None:
    turn = Turn()
    async with _serving(tmp_path, turn) as (url, client):
        ours, theirs = os.pipe()
        async with aipctl_process(*_call(url, "--follow"), stdout=theirs, env=ENV) as process:
            os.close(theirs)
            turn.let.release()
            await asyncio.to_thread(os.read, ours, 1)
            os.close(ours)
            for _ in range(2):
                turn.let.release()
            _, stderr = await process.communicate()
        assert await _result(client) == "completed"
    assert process.returncode == 1
    assert f"aipctl action status {url} {ACTION}" in stderr.decode()
    assert b"Traceback" not in stderr
