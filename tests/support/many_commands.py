"""Runs many of the two commands at once, each in a process of its own, for the price of one start of Python.

A program of its own that forks: it reads orders from stdin, prints the process ids as one JSON line, waits, and prints
the statuses as another. An order is `{"program", "words", "stdout", "stderr"}`; with `step` and `signal` the process
gets that signal right before its n-th step outside of Python's own memory (a file, a socket, a thread…), with `count`
it writes the number of all such steps to that file.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

__all__ = ["Commands", "running_commands"]

_PROGRAMS = {
    "aipctl": ("aip_hermes.cli.aipctl.command", "main"),
    "aip-hermes": ("aip_hermes.cli.aip_hermes", "main"),
}
_IMPORTED = (
    *("aip_hermes.client", "aip_hermes.client.http", "rich.table", "httpx", "jsonschema"),
    *("aip_hermes.app", "aip_hermes.cli.doctor.command", "aip_hermes.cli.prune", "aip_hermes.cli.copies"),
)
"""What most of them would import one by one."""

_OUTSIDE = (
    *("open", "os.", "socket.bind", "socket.connect", "socket.getaddrinfo"),
    *("sqlite3.", "shutil.", "fcntl.", "tempfile.", "sys.set_asyncgen_hook"),
)
"""Steps that count: not how an event loop makes its sockets, where the standard library can't be stopped cleanly.

The last is what a loop does when something is read piece by piece, such as an answer.
"""
_MODULES = (".pyc", ".py", ".so")


class Commands:
    """pids: of the processes, in the order of their orders."""

    def __init__(self, process: asyncio.subprocess.Process, pids: Sequence[int]) -> None:
        self.pids = pids
        self._process = process

    async def statuses(self) -> list[int]:
        """Wait for all; a process that a signal ended has its negative number."""
        out, err = await self._process.communicate()
        assert self._process.returncode == 0, err
        found: list[int] = json.loads(out)
        return found


@asynccontextmanager
async def running_commands(
    orders: Sequence[Mapping[str, Any]], *, env: Mapping[str, str] | None = None
) -> AsyncIterator[Commands]:
    """Start all; what still runs at the end of the block is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env or os.environ),
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(list(orders)).encode() + b"\n")
        await process.stdin.drain()
        yield Commands(process, json.loads(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


def _ordered(order: Mapping[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        for number, name in ((0, os.devnull), (1, order["stdout"]), (2, order["stderr"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        _obey(order)
    return child


def _obey(order: Mapping[str, Any]) -> None:
    module, name = _PROGRAMS[order["program"]]
    main = getattr(sys.modules[module], name)
    sys.argv = [order["program"], *order["words"]]
    steps = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal steps
        if not event.startswith(_OUTSIDE) or (event == "open" and str(arguments[0]).endswith(_MODULES)):
            return
        steps += 1
        if steps == order.get("step"):
            os.kill(os.getpid(), order["signal"])

    sys.addaudithook(count)
    code: Any = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 99
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if "count" in order:
        Path(order["count"]).write_text(str(steps), encoding="ascii")
    os._exit(code)


def _tell(numbers: Sequence[int]) -> None:
    sys.stdout.write(json.dumps(numbers) + "\n")
    sys.stdout.flush()


def _main() -> None:
    for name in (*_IMPORTED, *(module for module, _ in _PROGRAMS.values())):
        importlib.import_module(name)
    children = [_ordered(order) for order in json.loads(sys.stdin.readline())]
    _tell(children)
    _tell([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])


if __name__ == "__main__":
    _main()
