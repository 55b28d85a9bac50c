"""`aip-hermes demo` as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.processes import alive, children_of, finish, running_up, start


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.requirement("demo:walk:verified", "demo:clean")
def test_the_demo_verifies_the_whole_lifecycle_and_leaves_nothing(temporary: Path) -> None:
    status, out, err = finish(start(["demo"], TMPDIR=str(temporary)))
    assert status == 0, out + err
    assert "All " in out
    assert "verifications held" in out
    assert "FAILED" not in out
    assert "zero requests at the endpoint" in out
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:endpoint")
def test_the_demo_walks_against_a_hermes_that_already_runs(tmp_path: Path, temporary: Path) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (_, ready):
        arguments = ["demo", "--endpoint", ready["hermes_url"], "--key-file", ready["hermes_key_file"]]
        for _ in range(2):
            status, out, err = finish(start(arguments, TMPDIR=str(temporary)))
            assert status == 0, out + err
            assert "Left at the endpoint: the closed session demo-" in out
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:walk:failure-named", "demo:clean")
def test_a_dead_endpoint_fails_the_demo_at_a_named_step(tmp_path: Path, temporary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    key = tmp_path / "key"
    key.write_text("a-key-of-enough-characters", encoding="utf-8")
    key.chmod(0o600)
    arguments = ["demo", "--endpoint", f"http://127.0.0.1:{port}", "--key-file", str(key)]
    status, out, err = finish(start(arguments, TMPDIR=str(temporary)))
    assert status == 1
    assert "Step 3 (create) failed" in err
    assert "Traceback" not in out + err
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:clean")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_demo_leaves_no_process(temporary: Path, number: signal.Signals) -> None:
    process = start(["demo"], TMPDIR=str(temporary))
    assert process.stdout is not None
    assert process.stdout.readline().lstrip().startswith("1 ")
    children = children_of(process.pid)
    assert len(children) == 2
    process.send_signal(number)
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while any(alive(child) for child in children):
        assert time.monotonic() < deadline
        os.sched_yield()
    if number is not signal.SIGKILL:
        assert list(temporary.iterdir()) == []


@pytest.mark.requirement("mistakes:one-sentence")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["demo", "--endpoint", "http://127.0.0.1:1"], "belong together"),
        (["demo", "--endpoint", "http://127.0.0.1:1", "--key-file", "/nowhere/key"], "can't be opened"),
        (["demo", "--endpoint", "ftp://127.0.0.1/", "--key-file", "KEY"], "http"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path: Path, temporary: Path, arguments: list[str], text: str) -> None:
    key = tmp_path / "key"
    key.write_text("a-key-of-enough-characters", encoding="utf-8")
    key.chmod(0o600)
    arguments = [str(key) if argument == "KEY" else argument for argument in arguments]
    status, out, err = finish(start(arguments, TMPDIR=str(temporary)))
    assert status != 0
    assert out == ""
    assert text in err
    assert "Traceback" not in err
    assert list(temporary.iterdir()) == []
