"""`make soak`: 20,000 mixed actions from several processes, their server killed every few seconds; then walkers of a
lifecycle, killed fifty times; then endpoints, killed thirty times at each kind of moment of a turn and at their start.

    make soak                     all of it
    make soak SOAK="500 --seed 7" a small one, with the chances of another day
    make soak SOAK="0 --walker-kills 50 --endpoint-kills 0"

Half of the kills of servers come from outside at a random moment, half at a random fault point; some servers die while
they start. Exit 0 only when what the clients were told, what the store holds and what the provider saw agree, and the
walkers left exactly the sessions, turns and forks that were meant, and each endpoint held what the one before it had
made durable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import structlog

from aip_hermes.runtime import FAULT_POINTS
from tests.soak.judge import Verdict, judge
from tests.support.counting_hermes import Provider, running_provider
from tests.support.crash_stage import Forks, running_forks
from tests.support.lifecycle_kills import walked
from tests.support.server_serving import written_settings
from tests.support.session_kills import MOMENTS, killed_starts, killed_turns

ACTIONS, WALKER_KILLS, FEWEST_KILLS = 20_000, 50, 5
ENDPOINT_KILLS, FEWEST_ENDPOINT_KILLS = 30, 2
PASSES = 200
"""A fault point lets at most that many go by before it kills."""


def main(arguments: Sequence[str]) -> int:
    """Run the soak and say what came of it on stdout; talk and progress go to stderr."""
    parser = argparse.ArgumentParser(prog="make soak", description="Kill a server under load and check every record.")
    parser.add_argument("actions", type=int, nargs="?", default=ACTIONS)
    parser.add_argument("--seed", type=int, default=1, help="of the mix and the kills; the timing is the machine's")
    parser.add_argument("--clients", type=int, default=4, help="processes, each with a few actions at a time")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two kills at most")
    parser.add_argument(
        "--walker-kills", type=int, help=f"{WALKER_KILLS}; in a smaller soak fewer, and at least {FEWEST_KILLS}"
    )
    parser.add_argument(
        "--endpoint-kills", type=int, help=f"{ENDPOINT_KILLS} for each kind of moment; in a smaller soak fewer"
    )
    asked = parser.parse_args(arguments)
    walker_kills = _share(asked, asked.walker_kills, WALKER_KILLS, FEWEST_KILLS)
    endpoint_kills = _share(asked, asked.endpoint_kills, ENDPOINT_KILLS, FEWEST_ENDPOINT_KILLS)
    # One after the other, whatever the first one found.
    return max(
        _serve_and_kill(asked) if asked.actions else 0,
        _walk_and_kill(walker_kills, seed=asked.seed) if walker_kills else 0,
        _kill_endpoints(endpoint_kills, seed=asked.seed) if endpoint_kills else 0,
    )


def _share(asked: argparse.Namespace, wanted: int | None, most: int, fewest: int) -> int:
    """Return how many kills were asked for, else as large a part of `most` as the actions are of all."""
    return min(max(most * asked.actions // ACTIONS, fewest), most) if wanted is None else wanted


def _serve_and_kill(asked: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="aip-soak-") as name:
        folder = Path(name)
        began = time.monotonic()
        kills = _run(folder, asked)
        seconds = time.monotonic() - began
        verdict = judge(
            journal=_lines(folder, "journal-*.jsonl"), records=_records(folder), log=_lines(folder, "provider.log"),
            wanted=asked.actions,
        )  # fmt: skip
    _say(verdict, kills=kills, seconds=seconds, seed=asked.seed)
    return 1 if verdict.wrong else 0


def _walk_and_kill(kills: int, *, seed: int) -> int:
    # The server of the walkers is in this process, and what it logs is no progress.
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[structlog.processors.add_log_level])
    progress, began = _Progress("{done} of {wanted} times a walker of a lifecycle was killed", kills), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="aip-soak-") as name:
        wrong = asyncio.run(walked(Path(name), kills=kills, seed=seed, on_kill=lambda _: progress.more(1)))
    progress.end()
    sys.stdout.write(f"{kills} kills of walkers in {time.monotonic() - began:.0f} s, seed {seed}: {_told(wrong)}\n")
    for sentence in wrong:
        sys.stdout.write(f"WRONG: {sentence}\n")
    return 1 if wrong else 0


def _kill_endpoints(kills: int, *, seed: int) -> int:
    total, began = (len(MOMENTS) + 1) * kills, time.monotonic()
    progress = _Progress("{done} of {wanted} times an endpoint was killed", total)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="aip-soak-") as name, running_forks() as forks:
        for work in (killed_turns, killed_starts):
            folder = Path(name) / work.__name__
            folder.mkdir()
            try:
                asyncio.run(work(folder, forks, kills=kills, seed=seed, on_kill=lambda: progress.more(1)))
            except AssertionError as error:
                wrong.append(f"{work.__name__}: {str(error) or 'not as it must be'}")
    progress.end()
    sys.stdout.write(f"{total} kills of endpoints in {time.monotonic() - began:.0f} s, seed {seed}: ")
    sys.stdout.write("not as meant\n" if wrong else "every durable row is there, once\n")
    for sentence in wrong:
        sys.stdout.write(f"WRONG: {sentence}\n")
    return 1 if wrong else 0


def _told(wrong: Sequence[str]) -> str:
    return "not as meant" if wrong else "every change was made once, and all that was meant is there"


def _run(folder: Path, asked: argparse.Namespace) -> int:
    """Let the clients work to their end; return how often the server died meanwhile."""
    with running_provider(folder) as provider, running_forks() as forks:
        config = written_settings(folder, endpoint_url=provider.url, port=_free_port()).path
        url = forks.start(config).url
        with _clients(folder, asked, url=url, provider=provider) as clients:
            kills = _kill_until_done(forks, config, clients, asked)
        forks.kill()
    return kills


@contextmanager
def _clients(
    folder: Path, asked: argparse.Namespace, *, url: str, provider: Provider
) -> Iterator[list[subprocess.Popen[bytes]]]:
    shares = [asked.actions // asked.clients + (n < asked.actions % asked.clients) for n in range(asked.clients)]
    with ExitStack() as stack:
        started: list[subprocess.Popen[bytes]] = []
        for number, share in enumerate(shares):
            journal = str(folder / f"journal-{number}.jsonl")
            settings = [url, provider.url, journal, str(share), f"{asked.seed}-{number}", str(sum(shares[:number]))]
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-m", "tests.soak.client", *settings], stdout=subprocess.PIPE)
            )
            stack.callback(process.kill)
            started.append(process)
        yield started


def _kill_until_done(
    forks: Forks, config: Path, clients: list[subprocess.Popen[bytes]], asked: argparse.Namespace
) -> int:
    chance = random.Random(asked.seed)  # noqa: S311 - moments and points, no secret
    outputs = {client.stdout.fileno(): client for client in clients if client.stdout is not None}
    progress = _Progress("{done} of {wanted} actions ended, the server was killed {kills} times", asked.actions)
    kills = 0
    moment = time.monotonic() + chance.uniform(0.05, asked.every)
    while outputs:
        left = max(moment - time.monotonic(), 0)
        ready, _, _ = select.select([*outputs, forks.fileno()], [], [], left)
        for output in outputs.keys() & ready:
            part = os.read(output, 65536)
            progress.more(part.count(b"\n"), kills=kills)
            if not part and outputs.pop(output).wait() != 0:
                raise SystemExit("a client gave up; what it says stands above")
        if forks.fileno() in ready:
            forks.ended()
        elif time.monotonic() >= moment:
            forks.kill()
        else:
            continue
        kills += 1
        while chance.random() < 0.2:  # some don't live through their start
            forks.start_briefly(config, live_s=chance.uniform(0, 0.2))
            kills += 1
        point = chance.choice(FAULT_POINTS) if chance.random() < 0.5 else None
        forks.start(config, die_at=point, passes=chance.randrange(PASSES))
        moment = time.monotonic() + chance.uniform(0.05, asked.every)
    progress.end()
    return kills


class _Progress:
    """A line that counts: over and over on a terminal, else one each tenth of the work. text: of `done`, `wanted` and
    what is told besides.
    """

    def __init__(self, text: str, wanted: int) -> None:
        self._text = text
        self._wanted = wanted
        self._done = 0
        self._shown = 0
        self._terminal = sys.stderr.isatty()

    def more(self, number: int, **besides: int) -> None:
        self._done += number
        step = 1 if self._terminal else max(self._wanted // 10, 1)
        if self._done // step > self._shown // step:
            self._shown = self._done
            text = self._text.format(done=self._done, wanted=self._wanted, **besides)
            sys.stderr.write(f"\r{text}" if self._terminal else f"{text}\n")
            sys.stderr.flush()

    def end(self) -> None:
        if self._terminal:
            sys.stderr.write("\n")


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def _lines(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob(pattern)):
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _records(folder: Path) -> list[dict[str, Any]]:
    """Read what the runtime kept, past the runtime."""
    with closing(sqlite3.connect(f"file:{folder / 'data' / 'aip.sqlite3'}?mode=ro", uri=True)) as store:
        store.row_factory = sqlite3.Row
        return [dict(row) for row in store.execute("SELECT action_id, state, uncertain, settled_at FROM actions")]


def _say(verdict: Verdict, *, kills: int, seconds: float, seed: int) -> None:
    rate = verdict.accepted / seconds if seconds else 0
    sys.stdout.write(
        f"{verdict.accepted} accepted = {verdict.completed + verdict.failed} settled "
        f"({verdict.completed} completed, {verdict.failed} failed) + {verdict.uncertain} definitely uncertain "
        f"({verdict.unsent} of them never left)\n"
        f"{verdict.sent} changes seen by the provider; {kills} kills in {seconds:.0f} s, {rate:.0f} actions/s, "
        f"seed {seed}\n"
    )
    for sentence in verdict.wrong[:20]:
        sys.stdout.write(f"WRONG: {sentence}\n")
    if len(verdict.wrong) > 20:
        sys.stdout.write(f"WRONG: and {len(verdict.wrong) - 20} more\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
