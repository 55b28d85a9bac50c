"""Starts the real `aipctl` in a process of its own, with an environment of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aip_hermes

__all__ = ["aipctl_environment", "aipctl_process", "run_aipctl", "start_aipctl"]

_SOURCE_ROOT = str(Path(aip_hermes.__path__[0]).parent)
_COMMAND = [sys.executable, "-m", "aip_hermes.cli.aipctl"]


def aipctl_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the machine's own environment: no proxy, no token, no locale but a plain one."""
    return {"PYTHONPATH": _SOURCE_ROOT, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **(extra or {})}


def run_aipctl(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run to the end, at most half a minute."""
    return subprocess.run(
        [*_COMMAND, *arguments], input=stdin, capture_output=True, env=aipctl_environment(env), timeout=30, check=False
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
