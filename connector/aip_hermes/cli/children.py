"""Child processes that end with their parent, whatever ends it.

A child prints one JSON line on stdout when it is ready. Its stdin is a pipe from the parent: when the parent dies, even
by SIGKILL, the pipe closes and the child stops by itself (`--until-stdin-closes`). Children are stopped by their
process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["Child", "ChildFailed", "stop_together"]

READY_S = 60.0
STOP_S = 4.0


class ChildFailed(Exception):
    """A child ended before it was ready, or wasn't ready in time. The text names the child and its last words."""


class Child:
    """One running `aip-hermes …` process. name: for messages. ready: its JSON line."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self.name = name
        self.ready = ready
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    async def start(cls, name: str, arguments: Sequence[str], *, log: IO[bytes] | None = None) -> Child:
        """Start `aip-hermes` with `arguments` and wait until it is ready. log: where its stderr goes; None: ours.

        Raises: ChildFailed; then nothing is left running.
        """
        command = [sys.executable, "-m", "aip_hermes.cli.aip_hermes", *arguments, "--until-stdin-closes"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
        )  # fmt: skip
        child = cls(name, process, {})
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            async with asyncio.timeout(READY_S):
                line = await process.stdout.readline()
            child.ready = json.loads(line)
        except (TimeoutError, ValueError) as error:
            await child.stop(patience_s=0 if isinstance(error, TimeoutError) else STOP_S)
            reason = "was not ready in time" if isinstance(error, TimeoutError) else "ended before it was ready"
            raise ChildFailed(f"{name} {reason} (exit status {process.returncode}){_last_words(log)}") from None
        except BaseException:
            await child.stop()
            raise
        return child

    async def wait(self) -> int:
        """Wait until the process has ended; return its exit status."""
        return await self._process.wait()

    async def stop(self, *, patience_s: float = 0) -> None:
        """SIGTERM, and SIGKILL after four seconds. Idempotent.

        patience_s: how long to wait before for one that is about to end by itself, so that its own status is kept.
        """
        if patience_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._process.wait()
        if self._process.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        # Popen.send_signal polls first: that takes the exit status from the event loop, which then reports 255.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)


async def stop_together(children: Sequence[Child]) -> None:
    """Stop all at once."""
    await asyncio.gather(*(child.stop() for child in children))


def _last_words(log: IO[bytes] | None) -> str:
    if log is None:
        return "; its messages stand above"
    text = Path(log.name).read_text(encoding="utf-8", errors="replace")
    return f"; its last messages:\n{text[-2000:].rstrip()}" if text else f"; {log.name} is empty: is the disk full?"
