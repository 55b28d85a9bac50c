"""Standard streams that are full, closed, or read by nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import client_answers as answers
from tests.support.client_command import aipctl_environment, start_aipctl
from tests.support.client_stub_server import running_stub

FULL = Path("/dev/full")
CALL = ("action", "call", "URL", "cap:hermes_agent:primary:session_get", "--input", "{}")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def _in_shell(redirections: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    line = f'exec "$@" {redirections}'
    command = ["sh", "-c", line, "sh", sys.executable, "-m", "aip_hermes.cli.aipctl", *arguments]
    return subprocess.run(command, capture_output=True, env=aipctl_environment(), timeout=120, check=False)


@needs_full
@pytest.mark.requirement("aipctl:output:unwritable")
@pytest.mark.parametrize("arguments", [("manifest", "fetch", "URL"), ("version",), ("--help",)])
def test_a_full_disk_is_said_without_a_traceback(arguments: tuple[str, ...]) -> None:
    full = os.open(FULL, os.O_WRONLY)
    with running_stub(answers.read_routes) as stub:
        process = start_aipctl(*(stub.url if word == "URL" else word for word in arguments), stdout=full)
        os.close(full)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 1
    first, second = stderr.decode().splitlines()
    assert first == "the output could not be written: no space left on device"
    assert second.startswith("  next: ")


@needs_full
@pytest.mark.requirement("aipctl:output:unwritable", "aipctl:identity:before-sending")
def test_nothing_is_sent_when_the_generated_id_cannot_be_shown() -> None:
    with running_stub(answers.read_routes) as stub:
        done = _in_shell(f"2>{FULL}", *(stub.url if word == "URL" else word for word in CALL))
        assert stub.requests == []
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.requirement("aipctl:output:unwritable")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_disturbs_nothing(closed: str) -> None:
    with running_stub(answers.read_routes) as stub:
        done = _in_shell(closed, "manifest", "fetch", stub.url)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"" if " >&-" in f" {closed}" else json.loads(done.stdout)


@pytest.mark.requirement("aipctl:output:unwritable")
def test_a_closed_stdin_is_an_empty_one() -> None:
    done = _in_shell("<&-", *CALL[:-1], "-")
    assert done.returncode == 2
    assert b"is no http(s) address" in done.stderr or b"stdin is empty" in done.stderr
    assert b"Traceback" not in done.stderr
