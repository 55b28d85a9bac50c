"""Folders of an embedded Hermes with sessions in them, and the command that looks after them as a process."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from aip_hermes.embedded.folder import STORE_NAME
from aip_hermes.embedded.session_db import SessionDB
from tests.support.processes import AIP_HERMES

__all__ = ["filled_folder", "in_store", "json_lines", "on_terminal", "sessions", "store_of", "told"]

T = TypeVar("T")


def store_of(folder: Path) -> Path:
    return folder / STORE_NAME


def in_store(folder: Path, work: Callable[[SessionDB], Coroutine[Any, Any, T]]) -> T:
    """Open the store of a folder, run `work` on it and close it."""

    async def opened() -> T:
        async with SessionDB(store_of(folder)) as db:
            return await work(db)

    return asyncio.run(opened())


def filled_folder(folder: Path, *, number: int = 3) -> Path:
    """Make `case-1` and so on, each with a title, a question and an answer; the first has ended."""

    async def fill(db: SessionDB) -> None:
        for one in range(1, number + 1):
            name = f"case-{one}"
            await db.create_session(name, "api_server", model="m")
            await db.set_session_title(name, f"Case {one}")
            await db.append_message(name, "user", f"where is invoice {one}?")
            await db.append_message(name, "assistant", b"\x00\xff" if one == 2 else "don't know")
        await db.end_session("case-1", "done")

    in_store(folder, fill)
    return folder


def sessions(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `aip-hermes sessions` to its end."""
    return subprocess.run(
        [*AIP_HERMES, "sessions", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "200"},
        cwd=cwd,
        check=False,
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the one JSON line of a command that did what it was asked."""
    assert done.returncode == 0, done.stderr
    (line,) = json_lines(done.stdout)
    return line


def on_terminal(*arguments: str | Path) -> str:
    """Run `aip-hermes sessions` on a terminal; return what a person sees, without colours."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*AIP_HERMES, "sessions", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, suppress(OSError):  # a terminal without a writer ends so
        while part := terminal.read(65_536):
            seen += part
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert process.wait(timeout=60) == 0, text
    return text
