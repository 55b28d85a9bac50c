"""Side by side, in one run: what a call costs through our server, through a bare relay, and straight to the provider.

Run: python bench/overhead.py
Prints a table on stderr and JSON on stdout; ends with 1 where a limit is missed. Provider, relay and server are
processes of their own; the load is one client on plain sockets that stay open. The sides take turns in short rounds, so
that a busy machine disturbs all alike; each counts with the median of its calls, and with the processor time that its
process used. `bench/overhead_relay.py` says what the relay does and leaves out.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aip_hermes.settings import render_template

HERE: Final = Path(__file__).parent
TOKEN: Final = "requester-0123456789"
AUTHORIZED: Final = f"authorization: Bearer {TOKEN}\r\n"
REVIEWER: Final = {
    "principal_id": "human:local:reviewer",
    "tenant_id": "local",
    **{name: [] for name in ("roles", "groups", "tenant_policies", "external_systems", "delegated_scopes")},
    "revision": 1,
    "revoked": False,
}
MESSAGES: Final = "/aip/v1/messages"
WARM_UP, ROUNDS, CALLS = 100, 20, 40


@dataclass(frozen=True, kw_only=True)
class Figure:
    """value: of `ours` and what stands beside it; at most `limit`."""

    name: str
    ours: float
    theirs: float
    direct: float | None
    unit: str
    limit: float

    @property
    def value(self) -> float:
        return self.ours / self.theirs

    @property
    def holds(self) -> bool:
        return self.value <= self.limit


class Line:
    """One connection that stays open; requests are written and answers read as bytes."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")

    def ask(self, method: str, path: str, body: bytes = b"", head: str = "") -> bytes:
        """Return the body of an answer. Raises SystemExit for one that is no success: it has no time."""
        lines = f"{method} {path} HTTP/1.1\r\nhost: bench\r\n{head}"
        if body:
            lines += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self._socket.sendall(f"{lines}\r\n".encode() + body)
        status = self._answers.readline()
        length = 0
        while (line := self._answers.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        answer = self._answers.read(length)
        if status[9:10] != b"2":
            raise SystemExit(f"{method} {path}: {status!r} {answer[:500]!r}")
        return answer


@dataclass(frozen=True, kw_only=True)
class Process:
    """A side in a process of its own."""

    pid: int
    port: int

    def processor_s(self) -> float:
        """Return the processor time of all its threads."""
        spent = 0
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                spent += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
        return spent / 1e9

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@dataclass
class Side:
    """times: of one call each, seconds. spent: processor seconds of its process over all of them."""

    call: Callable[[], object]
    process: Process
    times: list[float] = field(default_factory=list)
    spent: float = 0.0

    def round(self) -> None:
        before = self.process.processor_s()
        for _ in range(CALLS):
            start = time.perf_counter()
            self.call()
            self.times.append(time.perf_counter() - start)
        self.spent += self.process.processor_s() - before

    @property
    def median_us(self) -> float:
        return statistics.median(self.times) * 1e6

    @property
    def processor_us(self) -> float:
        return self.spent / len(self.times) * 1e6


@contextlib.contextmanager
def running(arguments: Sequence[str], *, log: Path) -> Iterator[tuple[int, str]]:
    """Start a process that ends when its stdin closes; yield its id and its first line."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(log.read_text(encoding="utf-8"))
        try:
            yield process.pid, line
        finally:
            process.communicate()


@contextlib.contextmanager
def plain(script: str, *arguments: str, log: Path) -> Iterator[Process]:
    with running([str(HERE / script), *arguments], log=log) as (pid, line):
        yield Process(pid=pid, port=int(line))


@contextlib.contextmanager
def ours(folder: Path, provider: Process) -> Iterator[Process]:
    """Run our server with the settings that `init` writes."""
    for name, secret in (
        ("hermes.key", "hermes-key-0123456789"),
        ("tokens/requester", TOKEN),
        ("tokens/reviewer", "r" * 20),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(secret, encoding="ascii")
        file.chmod(0o600)
    (folder / "approval-authority.json").write_text(json.dumps([REVIEWER]), encoding="ascii")
    config = folder / "aip-hermes.toml"
    config.write_text(render_template(port=0, endpoint_url=f"http://127.0.0.1:{provider.port}/"), encoding="utf-8")
    command = ["-m", "aip_hermes.cli.aip_hermes", "serve", "--config", str(config), "--until-stdin-closes"]
    with running(command, log=folder / "log") as (pid, line):
        yield Process(pid=pid, port=int(json.loads(line)["aip_url"].rpartition(":")[2]))


def envelope(operation: str, given: dict[str, Any], *, key: str | None = None) -> bytes:
    """Return a message with a new action."""
    action: dict[str, Any] = {
        "id": f"act_{uuid.uuid4().hex}",
        "capability_id": f"cap:hermes_agent:primary:{operation}",
        "input": given,
        "mode": "sync",
    }
    if key is not None:
        action["idempotency_key"] = key
    message = {
        "aip_version": "1.0",
        "message_type": "aip.core.v1.action",
        "message_id": f"msg_{uuid.uuid4().hex}",
        "sent_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "body": {"action": action},
    }
    return json.dumps(message).encode()


NUMBERS = itertools.count()


def read_envelope() -> bytes:
    return envelope("session_get", {"session_id": "s1"})


def new_session() -> dict[str, Any]:
    return {"id": f"case-{next(NUMBERS)}", "title": None, "model": "hermes-agent"}


def create_envelope() -> bytes:
    body = new_session() | {"title": f"Case {next(NUMBERS)}"}
    return envelope("session_create", {"body": body}, key=uuid.uuid4().hex)


def completed(answer: bytes) -> None:
    if b'"status":"completed"' not in answer.replace(b" ", b""):
        raise SystemExit(f"not completed: {answer[:800]!r}")


def relayed(process: Process, made: Callable[[], bytes], head: str = "") -> Side:
    line = Line(process.port)
    return Side(call=lambda: completed(line.ask("POST", MESSAGES, made(), head)), process=process)


def alternating(sides: Sequence[Side]) -> None:
    for side in sides:
        for _ in range(WARM_UP):
            side.call()
    for number in range(ROUNDS):
        for side in sides if number % 2 else reversed(sides):
            side.round()


def call_figures(provider: Process, relay: Process, server: Process) -> list[Figure]:
    straight = Line(provider.port)
    figures = []
    for name, made, direct, limits in (
        ("safe read", read_envelope, lambda: straight.ask("GET", "/api/sessions/s1"), (1.6, 2.0)),
        (
            "keyed create",
            create_envelope,
            lambda: straight.ask("POST", "/api/sessions", json.dumps(new_session()).encode()),
            (1.6, None),
        ),
    ):
        before = json.loads(straight.ask("GET", "/count"))
        sides = Side(call=direct, process=provider), relayed(relay, made), relayed(server, made, AUTHORIZED)
        alternating(sides)
        after = json.loads(straight.ask("GET", "/count"))
        sent = sum(after.values()) - sum(before.values())
        if sent != 3 * (WARM_UP + ROUNDS * CALLS):
            raise SystemExit(f"{sent} requests reached the provider")
        bare, theirs, mine = sides
        for what, of, limit in zip(
            ("median", "processor time of the server"), ("median_us", "processor_us"), limits, strict=True
        ):
            figures.append(
                Figure(
                    name=f"{name}, {what}",
                    ours=getattr(mine, of),
                    theirs=getattr(theirs, of),
                    direct=getattr(bare, of),
                    unit="µs",
                    limit=float("inf") if limit is None else limit,
                )
            )
    return figures


def table(figures: Sequence[Figure]) -> str:
    lines = ["| what | ours | beside | direct | ratio | limit | |", "|---|--:|--:|--:|--:|--:|---|"]
    for figure in figures:
        direct = "" if figure.direct is None else f"{figure.direct:,.0f}"
        limit = "" if figure.limit == float("inf") else f"≤ {figure.limit:g}"
        held = "" if not limit else "holds" if figure.holds else "MISSED"
        lines.append(
            f"| {figure.name} | {figure.ours:,.0f} {figure.unit} | {figure.theirs:,.0f} | {direct} "
            f"| {figure.value:.2f} | {limit} | {held} |"
        )
    return "\n".join(lines)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        provider = stack.enter_context(plain("overhead_provider.py", log=folder / "provider.log"))
        relay = stack.enter_context(
            plain(
                "overhead_relay.py",
                f"http://127.0.0.1:{provider.port}",
                str(folder / "relay.db"),
                log=folder / "relay.log",
            )
        )
        server = stack.enter_context(ours(folder, provider))
        figures = call_figures(provider, relay, server)
    sys.stderr.write(table(figures) + "\n")
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    told = [vars(figure) | {"value": figure.value, "holds": figure.holds} for figure in figures]
    sys.stdout.write(json.dumps({"machine": machine, "figures": told}, indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
