"""One key, two client processes, one server process, one endpoint that counts: one mutating request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.counting_hermes import running_provider
from tests.support.key_race import SESSION
from tests.support.processes import start, stop
from tests.support.server_serving import written_settings

EACH = 10


@contextmanager
def serving_process(folder: Path, *, endpoint_url: str) -> Iterator[str]:
    """Run the server; yield its address."""
    written_settings(folder, endpoint_url=endpoint_url)
    process = start(["serve", "--config", str(folder / "aip-hermes.toml")], log=folder / "server.log")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "server.log").read_text(encoding="utf-8")
        yield json.loads(line)["aip_url"]
    finally:
        stop(process)


@contextmanager
def racer(url: str, key: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client that is ready to send; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.key_race", url, key, str(EACH)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"ready": EACH}
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.requirement("fence:processes:one-send")
def test_twenty_submissions_of_two_processes_make_one_session(tmp_path: Path) -> None:
    with running_provider(tmp_path) as provider, serving_process(tmp_path, endpoint_url=provider.url) as url:
        with racer(url, "race") as one, racer(url, "race") as other:
            for process in (one, other):
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            told = []
            for process in (one, other):
                assert process.stdout is not None
                told += json.loads(process.stdout.readline())["told"]
        assert provider.seen(SESSION) == 1
    answered = [each for each in told if each["code"] != "idempotency.in_progress"]
    assert len(told) == 2 * EACH
    assert {(each["status"], each["session"], each["code"]) for each in answered} == {("completed", SESSION, None)}
    assert len({each["action_id"] for each in answered}) == 1
    assert [each["replay"] for each in answered].count(False) == 1
