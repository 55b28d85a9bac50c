"""What size does to our server: a status query over many stored actions, and memory after many served ones.

Run: python bench/overhead_sizes.py
Prints a table on stderr and JSON on stdout; ends with 1 where a limit is missed. The stores of the status query hold
copies of one action that a server really ran, with its events and audit records; two servers answer in turns. Memory is
one server's, which runs every action itself, a safe read and a keyed create in turns; about four minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from overhead import (
    AUTHORIZED,
    CALLS,
    ROUNDS,
    WARM_UP,
    Figure,
    Line,
    Process,
    Side,
    create_envelope,
    ours,
    plain,
    read_envelope,
    relayed,
    table,
)

FEW, MANY = 1_000, 100_000
EARLY, LATE = 200, 20_000
STORE: Final = "data/aip.sqlite3"


def multiply(store: Path, count: int) -> str:
    """Copy the store's one action until there are `count`; return its id, to which `_` and a number is added."""
    with contextlib.closing(sqlite3.connect(store)) as raw:
        [(action_id,)] = raw.execute("SELECT action_id FROM actions").fetchall()
        for name in ("actions", "events", "audit"):
            columns = [row[1] for row in raw.execute(f"PRAGMA table_info({name})") if row[1] != "seq"]
            for row in raw.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall():
                copies = (
                    [copied(column, value, action_id, number) for column, value in zip(columns, row, strict=True)]
                    for number in range(count)
                )
                places = ", ".join("?" for _ in columns)
                raw.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})", copies)
        raw.commit()
    return str(action_id)


def copied(column: str, value: object, action_id: str, number: int) -> object:
    if not isinstance(value, str):
        return value
    return f"{value}_{number}" if column == "event_id" else value.replace(action_id, f"{action_id}_{number}")


@contextlib.contextmanager
def filled(folder: Path, provider: Process, count: int) -> Iterator[Side]:
    """Yield the status queries of a server over `count` stored actions."""
    folder.mkdir()
    with ours(folder, provider) as server:
        relayed(server, read_envelope, AUTHORIZED).call()
    action_id = multiply(folder / STORE, count)
    with ours(folder, provider) as server:
        line, choice = Line(server.port), random.Random(7)

        def ask() -> None:
            wanted = f"{action_id}_{choice.randrange(count)}"
            answer = json.loads(line.ask("GET", f"/aip/v1/actions/{wanted}", head=AUTHORIZED))["action_status"]
            if (answer["action_id"], answer["state"]) != (wanted, "completed"):
                raise SystemExit(f"not found: {answer}")

        yield Side(call=ask, process=server)


def status_figure(folder: Path, provider: Process) -> Figure:
    with (
        filled(folder / "few", provider, FEW) as few,
        filled(folder / "many", provider, MANY) as many,
    ):
        for side in (few, many):
            for _ in range(WARM_UP):
                side.call()
        for number in range(ROUNDS):
            for side in (few, many) if number % 2 else (many, few):
                for _ in range(5):
                    side.round()
    return Figure(
        name=f"status query over {MANY:,} stored actions beside {FEW:,}, median of {5 * ROUNDS * CALLS:,}",
        ours=many.median_us,
        theirs=few.median_us,
        direct=None,
        unit="µs",
        limit=1.5,
    )


def memory_figure(folder: Path, provider: Process) -> Figure:
    folder.mkdir()
    with ours(folder, provider) as server:
        sides = itertools.cycle([relayed(server, made, AUTHORIZED) for made in (read_envelope, create_envelope)])
        sizes = []
        for number in range(1, LATE + 1):
            next(sides).call()
            if number in (EARLY, LATE):
                sizes.append(server.resident_bytes() / 2**20)
    return Figure(
        name=f"resident memory after {LATE:,} actions beside {EARLY:,}",
        ours=sizes[1],
        theirs=sizes[0],
        direct=None,
        unit="MiB",
        limit=2,
    )


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        provider = stack.enter_context(plain("overhead_provider.py", log=folder / "provider.log"))
        figures = [status_figure(folder, provider), memory_figure(folder / "memory", provider)]
    sys.stderr.write(table(figures) + "\n")
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    told = [vars(figure) | {"value": figure.value, "holds": figure.holds} for figure in figures]
    sys.stdout.write(json.dumps({"machine": machine, "figures": told}, indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
