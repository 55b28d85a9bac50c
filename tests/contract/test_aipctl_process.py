"""The real command in its own process: exit codes, streams, signals, and what it says when there is no server."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import client_answers as answers
from tests.support.client_command import run_aipctl, start_aipctl
from tests.support.client_stub_server import Answer, Request, running_stub

ACTION = answers.ACTION_ID
UNUSED = "http://127.0.0.1:9"
WAIT_S = 30


_REFUSED = answers.refused("auth.native_http_unauthorized", "auth", 401, "invalid bearer token")


def _reply(body: dict[str, Any]) -> Callable[[Request], Answer]:
    return lambda request: answers.reply_with(body, request)


@pytest.mark.requirement("aipctl:exit:codes", "aipctl:output:json-or-nothing")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(_reply(answers.completed({})), 0, id="completed"),
        pytest.param(lambda _: _REFUSED, 1, id="refused"),
        pytest.param(_reply(answers.pending()), 5, id="pending"),
        pytest.param(lambda _: Answer(fate="cut"), 4, id="lost answer"),
    ],
)
def test_the_process_ends_with_the_exit_code_of_the_outcome(answer: Callable[[Request], Answer], code: int) -> None:
    with running_stub(answer) as stub:
        done = run_aipctl("action", "call", stub.url, "cap:x", "--action-id", ACTION, "--fail-on-status")
    assert done.returncode == code
    assert bool(done.stdout) is (code in (0, 5))
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement(
    "aipctl:exit:codes", "aipctl:output:json-or-nothing", "aipctl:identity:before-sending", "client:failure:told-apart"
)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        (UNUSED, b"refused\n  next: is the server running? start one with `aip-hermes up`"),
        ("http://no-such-host.invalid", b"the host name could not be resolved\n  next: "),
    ],
)
def test_without_a_server_the_id_is_known_and_the_next_step_is_said(url: str, said: bytes) -> None:
    done = run_aipctl("action", "call", url, "cap:x")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"action id: act_")
    assert said in done.stderr


@pytest.mark.requirement("client:failure:told-apart")
def test_https_to_a_plain_server_is_a_tls_failure() -> None:
    with running_stub(answers.read_routes) as stub:
        done = run_aipctl("manifest", "fetch", stub.url.replace("http:", "https:"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"TLS failed" in done.stderr
    assert b"--native-tls-ca-file" in done.stderr


@pytest.mark.requirement("aipctl:identity:before-sending")
def test_after_sigkill_the_generated_identities_are_on_stderr() -> None:
    with running_stub(lambda _: Answer(fate="never")) as stub:
        process = start_aipctl("action", "call", stub.url, "cap:x", "--generate-key")
        try:
            action = stub.wait_for_request().json["body"]["action"]
        finally:
            process.kill()
        stdout, stderr = process.communicate(timeout=WAIT_S)
    assert stdout == b""
    assert stderr.decode().splitlines() == [
        f"action id: {action['id']}",
        f"idempotency key: {action['idempotency_key']}",
    ]


@pytest.mark.requirement("aipctl:identity:before-sending")
def test_the_identities_are_shown_before_a_connection_is_asked_for() -> None:
    with socket.socket() as listener:
        # Nobody accepts: the connection is never answered, so whatever is on stderr was there before.
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.create_connection(listener.getsockname()):
            process = start_aipctl("action", "call", f"http://127.0.0.1:{listener.getsockname()[1]}", "cap:x")
            assert process.stderr is not None
            try:
                line = process.stderr.readline()
            finally:
                process.kill()
                process.communicate(timeout=WAIT_S)
    assert line.startswith(b"action id: act_")


@pytest.mark.requirement("aipctl:exit:interrupt")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("action", "call", "URL", "cap:x", "--action-id", ACTION), f"aipctl action status URL {ACTION}"),
        (
            ("approval", "approve", "URL", answers.APPROVAL_ID, "--reason", "x"),
            f"aipctl approval show URL {answers.APPROVAL_ID}",
        ),
    ],
)
def test_an_interrupt_names_what_may_have_happened_and_the_query(command: tuple[str, ...], expected: str) -> None:
    def answer(request: Request) -> Answer:
        return Answer(fate="never") if request.method == "POST" else answers.read_routes(request)

    with running_stub(answer) as stub:
        process = start_aipctl(*(stub.url if word == "URL" else word for word in command))
        try:
            while stub.wait_for_request().method != "POST":
                pass
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert (process.returncode, stdout) == (130, b"")
    assert b"Traceback" not in stderr
    assert b"interrupted: " in stderr
    assert expected.replace("URL", stub.url) in stderr.decode()


@pytest.mark.requirement("client:send:loopback-not-proxied")
@pytest.mark.parametrize("no_proxy", [None, "example.test"])
def test_proxy_variables_do_not_touch_this_machine(no_proxy: str | None) -> None:
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), UNUSED)
    with running_stub(answers.read_routes) as stub:
        done = run_aipctl(
            "manifest", "fetch", stub.url, env={**proxies, **({"NO_PROXY": no_proxy} if no_proxy else {})}
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.requirement("client:send:loopback-not-proxied")
def test_another_machine_is_reached_through_the_configured_proxy() -> None:
    with running_stub(answers.read_routes) as proxy:
        done = run_aipctl("manifest", "fetch", "http://aip.example.test", env={"HTTP_PROXY": proxy.url})
        assert [request.target for request in proxy.requests] == ["http://aip.example.test/aip/v1/manifest"]
    assert done.returncode == 1


@pytest.mark.requirement("client:failure:told-apart", "aipctl:output:json-or-nothing")
@pytest.mark.parametrize("proxy", ["foo://x", "http://no-such-proxy.invalid:1", UNUSED])
def test_a_proxy_that_is_of_no_use_is_named_as_the_cause(proxy: str) -> None:
    done = run_aipctl("manifest", "fetch", "http://aip.example.test", env={"HTTP_PROXY": proxy})
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"next: a proxy is configured" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    file.chmod(0o644)
    done = run_aipctl("manifest", "fetch", "https://127.0.0.1:9", "--native-tls-ca-file", str(file))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(f"{file} holds no certificates\n".encode())


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_on_a_terminal_an_approval_is_a_table() -> None:
    ours, theirs = os.openpty()
    with running_stub(answers.read_routes) as stub, os.fdopen(ours, "rb", buffering=0) as screen:
        process = start_aipctl("approval", "show", stub.url, answers.APPROVAL_ID, stdout=theirs)
        os.close(theirs)
        shown = b""
        while b"policy hash" not in shown:
            shown += screen.read(4096)
        process.kill()
        process.communicate(timeout=WAIT_S)
    assert "┃".encode() in shown or "│".encode() in shown
    assert b"support-case-1" in shown


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("a-secret-of-the-test\n")
    file.chmod(0o600)
    return file


def _group_readable(file: Path) -> Path:
    file.chmod(0o640)
    return file


def _link(file: Path) -> Path:
    link = file.with_name("link")
    link.symlink_to(file)
    return link


def _written(content: bytes) -> Callable[[Path], Path]:
    def write(file: Path) -> Path:
        file.write_bytes(content)
        return file

    return write


@pytest.mark.requirement("client:token:rules", "client:token:not-shown", "aipctl:output:json-or-nothing")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(_group_readable, b"chmod 600", id="mode 0640"),
        pytest.param(_link, b"symbolic link", id="link"),
        pytest.param(lambda file: file.parent, b"regular file", id="folder"),
        pytest.param(lambda file: file.with_name("missing"), b"can't be opened", id="missing"),
        pytest.param(_written(b""), b"is empty", id="empty"),
        pytest.param(_written(b" \r\n"), b"is empty", id="blank"),
        pytest.param(_written(b"x" * 16_385), b"larger than 16384 bytes", id="too large"),
        pytest.param(_written(b"a-secret\xff"), b"UTF-8", id="not UTF-8"),
        pytest.param(_written(b"a-secret of-two-words"), b"white space", id="two words"),
        pytest.param(_written("a-secret-é".encode()), b"not ASCII", id="not ASCII"),
    ],
)
def test_a_bad_token_file_is_refused_before_anything_is_sent(
    token: Path, spoil: Callable[[Path], Path], said: bytes
) -> None:
    file = spoil(token)
    with running_stub(answers.read_routes) as stub:
        done = run_aipctl("--native-bearer-token-file", str(file), "manifest", "fetch", stub.url)
    assert (done.returncode, done.stdout, stub.requests) == (1, b"", [])
    assert said in done.stderr
    assert str(file).encode() in done.stderr
    assert b"a-secret" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("client:token:not-shown")
def test_a_token_given_by_value_is_in_no_text() -> None:
    with running_stub(lambda _: _REFUSED) as stub:
        done = run_aipctl("action", "call", stub.url, "cap:x", env={"GETAIP_NATIVE_BEARER_TOKEN": "a-secret"})
        assert stub.requests[0].headers["authorization"] == "Bearer a-secret"
        bad = run_aipctl("action", "call", stub.url, "cap:x", env={"GETAIP_NATIVE_BEARER_TOKEN": "a-secret\x01x"})
    assert (done.returncode, bad.returncode) == (1, 1)
    assert b"a-secret" not in done.stdout + done.stderr + bad.stdout + bad.stderr
    assert len(stub.requests) == 1


@pytest.mark.requirement("aipctl:output:json-or-nothing")
@pytest.mark.parametrize(
    "command",
    [
        "manifest fetch URL",
        "capability list URL",
        "action call URL cap:x",
        "action status URL act_1",
        "approval show URL appr_1 --output json",
        "approval approve URL appr_1 --reason x",
    ],
)
def test_stdout_stays_empty_when_the_answer_is_too_long(command: str) -> None:
    with running_stub(lambda _: Answer(body=b'{"x": "' + b"y" * 2000)) as stub:
        words = [stub.url if word == "URL" else word for word in command.split()]
        done = run_aipctl("--native-max-response-bytes", "1000", *words)
    assert done.returncode in (1, 4)
    assert done.stdout == b""
    assert b"HTTP response exceeded the 1000-byte limit" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("aipctl:output:json-or-nothing", "aipctl:output:neutralised")
def test_the_document_is_the_same_in_a_plain_locale() -> None:
    body = answers.completed({"title": "票据 \x1b[2J\x9b", "lone": "\ud800"})
    with running_stub(_reply(body)) as stub:
        done = run_aipctl(
            "action", "call", stub.url, "cap:x", "--action-id", ACTION, env={"LC_ALL": "C", "PYTHONUTF8": "0"}
        )
    assert done.returncode == 0
    assert json.loads(done.stdout)["body"] == body
    assert "票据" in done.stdout.decode()
    assert b"\x1b" not in done.stdout


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with running_stub(answers.read_routes) as stub:
        process = start_aipctl("manifest", "fetch", stub.url, stdout=writable)
        os.close(writable)
        _, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert stderr == b""


@pytest.fixture(scope="module")
def version() -> str:
    done = run_aipctl("version")
    assert done.returncode == 0
    return done.stdout.decode().strip()


def test_the_version_is_told_three_ways(version: str) -> None:
    name, _, number = version.partition(" ")
    assert (name, bool(number)) == ("aipctl", True)
    assert run_aipctl("--version").stdout.decode().strip() == version
    assert json.loads(run_aipctl("version", "--output", "json").stdout)["version"] == number
