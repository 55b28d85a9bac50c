"""Side by side, in one run: our session store and the one of hermes-agent 0.19.0, both on SQLite, every commit flushed.

Run: python -m venv .venv-hermes-agent
     .venv-hermes-agent/bin/pip install -r bench/requirements-session-store.txt
     python bench/session_store.py [--theirs .venv-hermes-agent/bin/python] [--folder DIR]

Prints a table on stderr and JSON on stdout; ends with 1 where a limit is missed. Each side is a process of its own,
with a file of its own in `--folder`: 1,000 sessions, 20,000 messages of 300 bytes written by one durable append each,
one session of 2,000. Then the sides take turns in short rounds of the same operations on the same texts; each counts
with its best round, so that a busy machine disturbs both alike. Both use the mode that they ship with: a write-ahead
log and `synchronous=FULL`; the answer of a process that says otherwise stops the run. Sixteen tasks are coroutines on
our side and threads on the other, whose calls block.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from session_store_sides import COMMON, LONG, LONG_ID, MESSAGES, PHRASE, RARE, SESSIONS, session_id

HERE: Final = Path(__file__).parent
MANY: Final = 16


@dataclass(frozen=True, kw_only=True)
class Step:
    """limits: at least this ratio of operations a second, by number of tasks; None: told only. count: per round, by
    tasks."""

    name: str
    step: str
    limits: dict[int, float | None]
    count: dict[int, int]
    term: str | None = None
    rounds: int = 15


STEPS: Final = (
    Step(name="list newest 50 by activity", step="list", limits={1: 10, MANY: 10}, count={1: 10, MANY: 32}),
    Step(name="search, common term", step="search", term=COMMON, limits={1: 4, MANY: 4}, count={1: 8, MANY: 32}),
    Step(name="search, rare term", step="search", term=RARE, limits={1: 1.2, MANY: None}, count={1: 50, MANY: 96}),
    Step(name="search, phrase", step="search", term=PHRASE, limits={1: 1.5, MANY: None}, count={1: 15, MANY: 32}),
    Step(
        name=f"resume of {LONG:,} messages", step="resume", term=LONG_ID,
        limits={1: 1.5, MANY: None}, count={1: 5, MANY: 32},
    ),
    Step(
        name="resume of 18 messages", step="resume", term=session_id(500),
        limits={1: 1, MANY: None}, count={1: 100, MANY: 160},
    ),
    Step(name="create", step="create", limits={1: 1, MANY: 3}, count={1: 40, MANY: 160}),
    Step(name="durable append", step="append", limits={1: 1.3, MANY: 8}, count={1: 50, MANY: 320}),
    Step(name=f"delete of {LONG:,} messages", step="delete", limits={1: 2}, count={1: 1}, rounds=5),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Figure:
    """limit: at least, where `at_least`, else at most; None: told only. value: the ratio."""

    name: str
    tasks: int | None
    unit: str
    ours: float
    theirs: float
    value: float
    limit: float | None
    at_least: bool = True

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


class Side:
    """A store in a process of its own."""

    def __init__(self, stack: ExitStack, python: str, kind: str, folder: Path) -> None:
        # Theirs sees nothing of ours, and neither a home of whoever runs this.
        environment = {**os.environ, "HERMES_HOME": str(folder)}
        if kind == "theirs":
            environment.pop("PYTHONPATH", None)
        self._process = stack.enter_context(
            subprocess.Popen(
                [python, str(HERE / "session_store_sides.py"), kind, str(folder / f"{kind}.db")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
            )
        )  # fmt: skip
        stack.callback(self._process.kill)

    def do(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a side ended: {self._process.args!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def step_figures(sides: Sequence[Side], step: Step) -> list[Figure]:
    figures = []
    for tasks, limit in step.limits.items():
        best = [float("inf"), float("inf")]
        count = step.count[tasks]
        for number in range(step.rounds):
            for place, side in enumerate(sides):
                answer = side.do(step=step.step, round=number, tasks=tasks, count=count, term=step.term)
                best[place] = min(best[place], answer["seconds"])
        ours, theirs = (count / seconds for seconds in best)
        figures.append(
            Figure(
                name=step.name, tasks=tasks, unit="/s", ours=ours, theirs=theirs,
                value=ours / theirs, limit=limit,
            )
        )  # fmt: skip
        sys.stderr.write(row(figures[-1]) + "\n")
    return figures


def figures_of(sides: Sequence[Side]) -> tuple[list[Figure], list[dict[str, Any]]]:
    filled = [side.do(step="fill") for side in sides]
    for facts in filled:
        expect((facts["sessions"], facts["messages"]), (SESSIONS, MESSAGES))
        expect((facts["journal_mode"], facts["synchronous"]), ("wal", 2))
    figures = [figure for step in STEPS for figure in step_figures(sides, step)]
    peaks = [side.do(step="end")["peak"] for side in sides]
    for name, limit, (ours, theirs) in (
        ("database file after the 20,000 appends", 0.85, [facts["bytes"] for facts in filled]),
        ("peak memory of the process", 1.0, peaks),
    ):
        mine, others = ours / 2**20, theirs / 2**20
        figures.append(
            Figure(
                name=name, tasks=None, unit=" MiB", ours=mine, theirs=others,
                value=mine / others, limit=limit, at_least=False,
            )
        )  # fmt: skip
        sys.stderr.write(row(figures[-1]) + "\n")
    return figures, filled


def expect(found: object, wanted: object) -> None:
    """A side that does not do its work has no time."""
    if found != wanted:
        raise SystemExit(f"{found!r} instead of {wanted!r}")


HEAD: Final = "| what | tasks | ours | hermes-agent 0.19.0 | ratio | limit | |\n|---|--:|--:|--:|--:|--:|---|"


def row(figure: Figure) -> str:
    """Return one row of the table."""
    bound = "" if figure.limit is None else f"{'≥' if figure.at_least else '≤'} {figure.limit:g}"
    held = "" if figure.limit is None else "holds" if figure.holds else "MISSED"
    tasks = "" if figure.tasks is None else str(figure.tasks)
    ours, theirs = (f"{value:,.1f}{figure.unit}" for value in (figure.ours, figure.theirs))
    return f"| {figure.name} | {tasks} | {ours} | {theirs} | {figure.value:.2f} | {bound} | {held} |"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Our session store beside the one of hermes-agent 0.19.0.")
    parser.add_argument("--theirs", default=str(HERE.parent / ".venv-hermes-agent" / "bin" / "python"))
    parser.add_argument("--folder", type=Path, help="where the files lie; its disk is what is measured")
    asked = parser.parse_args(arguments)
    if not Path(asked.theirs).exists():
        parser.error(f"{asked.theirs} is not there; the head of this file says how to make it")
    sys.stderr.write(HEAD + "\n")
    with tempfile.TemporaryDirectory(prefix="session-store-", dir=asked.folder) as name, ExitStack() as stack:
        sides = [
            Side(stack, python, kind, Path(name))
            for python, kind in ((sys.executable, "ours"), (str(Path(asked.theirs).absolute()), "theirs"))
        ]
        figures, filled = figures_of(sides)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    told = [vars(figure) | {"holds": figure.holds} for figure in figures]
    sys.stdout.write(json.dumps({"machine": machine, "sides": filled, "figures": told}, indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
