"""The test's side of servers that are killed: order one, see it ready or dead, and speak to it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aip_hermes.client import AipConnection
from aip_hermes.secret import Secret

__all__ = ["REQUESTER", "REVIEWER", "Forks", "HermesServer", "Server", "running_forks"]

REQUESTER = Secret("requester-0123456789")
REVIEWER = Secret("reviewer-0123456789")


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that is ready."""

    pid: int
    url: str

    def connection(self, token: Secret = REQUESTER, *, answer_timeout_s: float = 30) -> AipConnection:
        return AipConnection(base_url=self.url, token=token, answer_timeout_s=answer_timeout_s)


@dataclass(frozen=True, kw_only=True)
class HermesServer:
    """An endpoint that is ready."""

    pid: int
    url: str
    key: str


class Forks:
    """Orders servers from `tests.support.crash_server`, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._running: int | None = None
        self._unread = b""
        assert self._read() == {"forks": True}

    def start(self, config: Path, *, die_at: str | None = None, passes: int = 0) -> Server:
        """Start a server on the port of its settings and wait until it is ready.

        die_at: the fault point at which it is SIGKILLed, after it passed there `passes` times.
        """
        self._order(config, die_at=die_at, passes=passes)
        said: dict[str, Any] = {}
        while not said.keys() >= {"pid", "aip_url"}:
            said |= self._read()
            assert "ended" not in said, _log_of(config).read_text(encoding="utf-8")
        self._running = said["pid"]
        return Server(pid=said["pid"], url=said["aip_url"])

    def start_briefly(self, config: Path, *, live_s: float) -> bool:
        """Start a server and let it be SIGKILLed after `live_s`; return whether it was ready before."""
        self._order(config, live_s=live_s)
        return self._killed(config)

    def start_hermes(self, folder: Path, *options: str) -> HermesServer:
        """Start `aip-hermes hermes` on `folder`/data and wait until it is ready."""
        self._order(folder / "hermes", arguments=_hermes_arguments(folder, options))
        said: dict[str, Any] = {}
        while not said.keys() >= {"pid", "hermes_url"}:
            said |= self._read()
            assert "ended" not in said, _log_of(folder / "hermes").read_text(encoding="utf-8")
        self._running = said["pid"]
        key = Path(said["hermes_key_file"]).read_text(encoding="ascii").strip()
        return HermesServer(pid=said["pid"], url=said["hermes_url"], key=key)

    def start_hermes_briefly(self, folder: Path, *, live_s: float) -> bool:
        """Start `aip-hermes hermes` on `folder`/data, SIGKILLed after `live_s`; return whether it was ready before."""
        self._order(folder / "hermes", arguments=_hermes_arguments(folder, ()), live_s=live_s)
        return self._killed(folder / "hermes")

    def _order(self, config: Path, **members: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"config": str(config), "log": str(_log_of(config)), **members}) + "\n")
        self._process.stdin.flush()

    def _killed(self, config: Path) -> bool:
        said: dict[str, Any] = {}
        while "ended" not in said:
            said |= self._read()
        assert said["signal"] == signal.SIGKILL, _log_of(config).read_text(encoding="utf-8")
        return bool(said.keys() & {"aip_url", "hermes_url"})

    def fileno(self) -> int:
        """Return what can be read as soon as a server ended."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def ended(self) -> int | None:
        """Wait for the end of the server that runs; return the signal that ended it."""
        end = self._read()
        assert end.pop("ended") == self._running
        self._running = None
        number: int | None = end["signal"]
        return number

    def kill(self) -> None:
        """End the server that runs, if one does, by SIGKILL."""
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):  # it died by itself in this moment
                os.kill(self._running, signal.SIGKILL)
            self.ended()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._process.stdout], [], [], 30)
            assert ready, "nothing heard for half a minute"
            part = os.read(self._process.stdout.fileno(), 4096)
            assert part, "the process that forks servers is gone"
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said


def _hermes_arguments(folder: Path, options: Sequence[str]) -> list[str]:
    return ["hermes", "--data", str(folder / "data"), "--port", "0", *options]


def _log_of(config: Path) -> Path:
    return config.parent / "server.log"


@contextlib.contextmanager
def running_forks() -> Iterator[Forks]:
    """Run the process that forks servers; it ends with the block, and its server too."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.crash_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Forks(process)
    finally:
        process.communicate(timeout=20)
