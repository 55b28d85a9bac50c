"""`aip-hermes demo` as a newcomer runs it."""

from __future__ import annotations

import io
import os
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from rich.console import Console

from aip_hermes.cli.demo.report import print_table
from aip_hermes.cli.demo.step import Step
from tests.support.processes import AIP_HERMES, alive, children_of, finish, running_up, start

README = Path(__file__).resolve().parents[2] / "README.md"


def shown_table() -> list[str]:
    """Return the lines of the table that the README shows, without the last one: it tells a time."""
    text = README.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    return text.splitlines()[:-1]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key file as it should be, with a key that no endpoint knows."""
    file = tmp_path / "key"
    file.write_text("a-key-of-enough-characters", encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.mark.requirement("demo:walk:verified", "demo:clean", "readme:by-hand")
def test_the_demo_verifies_the_whole_lifecycle_and_leaves_nothing(temporary: Path) -> None:
    status, out, err = finish(start(["demo"], TMPDIR=str(temporary)))
    assert status == 0, out + err
    assert "All " in out
    assert "verifications held" in out
    assert "FAILED" not in out
    assert "zero requests at the endpoint" in out
    printed = [line.rstrip() for line in out.splitlines()]
    assert [line for line in shown_table() if line not in printed] == []
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


@pytest.mark.requirement("demo:endpoint:cause", "demo:clean")
def test_a_dead_endpoint_is_named_with_its_cause_before_anything_is_sent(temporary: Path, key: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    status, out, err = finish(start(["demo", "--endpoint", url, "--key-file", str(key)], TMPDIR=str(temporary)))
    assert (status, out) == (1, "")
    assert f"{url}/ can't be reached: connection refused" in err
    assert "Traceback" not in err
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:walk:failure-named", "demo:endpoint:cause", "demo:clean")
def test_an_endpoint_that_dies_fails_the_demo_at_a_named_step(tmp_path: Path, temporary: Path) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (up, ready):
        arguments = ["demo", "--endpoint", ready["hermes_url"], "--key-file", ready["hermes_key_file"]]
        process = start(arguments, TMPDIR=str(temporary))
        assert process.stdout is not None
        while not process.stdout.readline().lstrip().startswith("3 "):
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        up.terminate()
        up.wait(timeout=30)
        process.send_signal(signal.SIGCONT)
        status, out, err = finish(process)
    assert status == 1
    assert "FAILED" in out
    last = err.rstrip().splitlines()[-1]
    assert last.startswith("Step ")
    assert "nothing got through to the endpoint: connection refused" in last
    assert "May be left at the endpoint: the sessions demo-" in err
    assert "Traceback" not in out + err
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("mistakes:one-sentence", "demo:walk:failure-named")
def test_a_wrong_key_fails_the_demo_with_the_endpoints_own_reason(tmp_path: Path, temporary: Path, key: Path) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (_, ready):
        arguments = ["demo", "--endpoint", ready["hermes_url"], "--key-file", str(key)]
        status, out, err = finish(start(arguments, TMPDIR=str(temporary)))
    assert status == 1
    assert "FAILED" in out
    assert "Step 3 (create) failed: connector.hermes_agent.authentication: " in err.rstrip().splitlines()[-1]
    assert "left at the endpoint" not in err


@pytest.mark.requirement("demo:clean")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_demo_leaves_no_process(temporary: Path, number: signal.Signals) -> None:
    process = start(["demo"], TMPDIR=str(temporary))
    assert process.stdout is not None
    assert process.stdout.readline().lstrip().startswith("1 ")
    children = children_of(process.pid)
    assert len(children) == 2
    process.send_signal(number)
    process.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while any(alive(child) for child in children):
        assert time.monotonic() < deadline
        os.sched_yield()
    if number is not signal.SIGKILL:
        assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:clean")
def test_impatience_does_not_cut_the_clean_up_short(temporary: Path) -> None:
    process = start(["demo"], TMPDIR=str(temporary))
    assert process.stdout is not None
    assert process.stdout.readline().lstrip().startswith("1 ")
    children = children_of(process.pid)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        os.sched_yield()
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert list(temporary.iterdir()) == []
    assert not any(alive(child) for child in children)


@pytest.mark.requirement("mistakes:one-sentence")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--endpoint", "http://127.0.0.1:1"], "belong together"),
        (["--endpoint", "http://127.0.0.1:1", "--key-file", "/nowhere/key"], "API_SERVER_KEY"),
        (["--endpoint", "ftp://127.0.0.1/", "--key-file", "KEY"], "--endpoint starts with http"),
        (["--endpoint", "http://127.0.0.1:abc", "--key-file", "KEY"], "--endpoint is no URL"),
        (["--endpoint", "http://127.0.0.1:99999", "--key-file", "KEY"], "--endpoint is no URL"),
        (["--endpoint", "http://[::1", "--key-file", "KEY"], "--endpoint is no URL"),
        (["--endpoint", "http://127.0.0.1:1/v1", "--key-file", "KEY"], "--endpoint is an origin"),
        (["--endpoint", "http://me:hunter2@127.0.0.1:1", "--key-file", "KEY"], "no user name and no password"),
        (["--endpoint", "http://", "--key-file", "KEY"], "--endpoint names a host"),
        (["--endpoint", "http://nobody.invalid:1", "--key-file", "KEY"], "can't be reached"),
    ],
)
def test_a_wrong_option_is_one_sentence(key: Path, temporary: Path, arguments: list[str], text: str) -> None:
    arguments = [str(key) if argument == "KEY" else argument for argument in arguments]
    status, out, err = finish(start(["demo", *arguments], TMPDIR=str(temporary)))
    assert status != 0
    assert out == ""
    assert text in err
    assert "Traceback" not in err
    assert "hunter2" not in err
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("mistakes:one-sentence")
def test_a_key_file_open_to_others_is_answered_with_the_command_that_closes_it(key: Path, temporary: Path) -> None:
    key.chmod(0o644)
    arguments = ["demo", "--endpoint", "http://127.0.0.1:1", "--key-file", str(key)]
    status, out, err = finish(start(arguments, TMPDIR=str(temporary)))
    assert (status, out) == (1, "")
    assert f"chmod 600 {key}" in err
    assert "aip-hermes.toml" not in err


@pytest.mark.requirement("output:unwritable")
def test_a_demo_whose_output_nobody_takes_stops_with_a_sentence(temporary: Path) -> None:
    process = start(["demo"], TMPDIR=str(temporary))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        err = process.stderr.read()
    assert process.wait(timeout=30) == 1
    assert "nobody reads its output" in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("output:unwritable")
def test_a_demo_started_with_closed_streams_still_walks(temporary: Path) -> None:
    command = f"exec {shlex.join(AIP_HERMES)} demo <&- >&-"
    done = subprocess.run(
        ["bash", "-c", command],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.requirement("demo:table")
@pytest.mark.parametrize(("width", "encoding"), [(62, "utf-8"), (80, "utf-8"), (120, "utf-8"), (80, "ascii")])
def test_the_table_fits_its_terminal_and_breaks_no_name(width: int, encoding: str) -> None:
    steps = [Step(number="8", title="fork", sent="session_messages, session_fork, session_get")]
    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_table(steps, Console(file=screen, width=width))
    screen.seek(0)
    lines = screen.read().splitlines()
    assert max(map(len, lines)) <= width
    for name in ("session_messages", "session_fork", "session_get"):
        assert any(name in line for line in lines)
