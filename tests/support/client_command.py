"""Starts the real `aipctl` in a process of its own, with an environment of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

import aip_hermes
from aip_hermes.cli.aipctl.command import aipctl
from tests.support import client_answers as answers
from tests.support.client_stub_server import Answer, Request, StubServer, running_stub

__all__ = [
    "aipctl_environment",
    "aipctl_process",
    "answering_stub",
    "invoke_aipctl",
    "run_aipctl",
    "start_aipctl",
]

_SOURCE_ROOT = str(Path(aip_hermes.__path__[0]).parent)
_COMMAND = [sys.executable, "-m", "aip_hermes.cli.aipctl"]


_NO_CREDENTIALS = {
    f"{prefix}NATIVE_{name}": None
    for prefix in ("GETAIP_", "AIP_")
    for name in ("BEARER_TOKEN", "BEARER_TOKEN_FILE", "PRINCIPAL_ID")
}


def invoke_aipctl(*arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Result:
    """Run the command in this process, without credentials of the environment but those of `env`."""
    return CliRunner(env={**_NO_CREDENTIALS, **(env or {})}).invoke(aipctl, arguments, input=stdin)


@contextmanager
def answering_stub() -> Iterator[StubServer]:
    """A server that answers reads, completes every action and takes every decision."""

    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return answers.read_routes(request)
        body = answers.events() if "approval_decision" in request.json["body"] else answers.completed({"ok": True})
        return answers.reply_with(body, request)

    with running_stub(answer) as stub:
        yield stub


def aipctl_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the machine's own environment: no proxy, no token, no locale but a plain one."""
    return {"PYTHONPATH": _SOURCE_ROOT, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **(extra or {})}


def run_aipctl(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run to the end, at most half a minute."""
    return subprocess.run(
        [*_COMMAND, *arguments], input=stdin, capture_output=True, env=aipctl_environment(env), timeout=120, check=False
    )


def start_aipctl(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start it; the caller ends and collects it. stdout: a file descriptor instead of a pipe to the caller."""
    return subprocess.Popen(
        [*_COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=aipctl_environment(),
    )


@asynccontextmanager
async def aipctl_process(
    *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, env: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run it beside a server of the same event loop; killed at the end of the block if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=aipctl_environment(env),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
