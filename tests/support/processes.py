"""The project's own commands as real processes, always stopped by their id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["AIPCTL", "AIP_HERMES", "alive", "children_of", "finish", "run_aipctl", "running_up", "start", "stop"]

AIP_HERMES = (sys.executable, "-m", "aip_hermes.cli.aip_hermes")
AIPCTL = (sys.executable, "-m", "aip_hermes.cli.aipctl")


def start(arguments: Sequence[str], *, log: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """Start `aip-hermes` with `arguments`; its stderr goes to `log`, else to a pipe.

    A server that is started alone ends with this process, however that ends.
    """
    alone = arguments[0] in ("serve", "hermes")
    with contextlib.ExitStack() as stack:
        return subprocess.Popen(
            [*AIP_HERMES, *arguments, *(("--until-stdin-closes",) if alone else ())],
            stdin=subprocess.PIPE if alone else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if log is None else stack.enter_context(log.open("wb")),
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )


def finish(process: subprocess.Popen[str], *, seconds: float = 120) -> tuple[int, str, str]:
    """Wait for the end; return status, stdout, stderr. Kills what does not end in time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err or ""


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM, *, seconds: float = 30) -> int:
    """Send a signal and return the exit status, which must come within `seconds`."""
    if process.poll() is None:
        process.send_signal(number)
    return finish(process, seconds=seconds)[0]


@contextlib.contextmanager
def running_up(
    folder: Path, *, log: Path, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run `aip-hermes up` on free ports; yield the process and its ready line. Killed at the end if it still runs."""
    arguments = ["up", "--data", str(folder), "--port", "0", "--hermes-port", "0"]
    process = start(arguments, log=log, **environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text(encoding="utf-8")
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def run_aipctl(arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `aipctl` to its end."""
    return subprocess.run(
        [*AIPCTL, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def children_of(pid: int) -> list[int]:
    """Return the process ids of the direct children."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return found


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")
