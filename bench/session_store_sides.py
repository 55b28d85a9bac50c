"""One side of `bench/session_store.py`, in a process of its own: a store, and the work that is timed on it.

Run by the bench with the Python of that side's environment. Orders come on stdin, one JSON object a line, answers go to
stdout; the texts are those of a seeded generator, the same for both sides. Nothing here needs more than the standard
library and the store itself, so that the memory of a side is its store's.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol

SESSIONS: Final = 1_000
MESSAGES: Final = 20_000
LONG: Final = 2_000
TEXT_BYTES: Final = 300
LONG_ID: Final = "long"
COMMON, RARE, PHRASE = "deployment", "zanzibar", '"blue harbor"'


def texts(seed: int) -> Iterator[str]:
    """Yield texts of 300 bytes: the common word in every second, the phrase in one of a hundred, each of its words
    alone in one of ten, the rare word in one of four thousand."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(3_000)]
    number = 0
    while True:
        number += 1
        found = [f"m{seed}n{number}"]
        found += ["deployment"] if number % 2 else []
        found += ["blue", "harbor"] if number % 100 == 7 else []
        found += ["harbor", "and", "blue"] if number % 10 == 3 else []
        found += ["zanzibar"] if number % 4_000 == 11 else []
        length = len(" ".join(found))
        while length < TEXT_BYTES:
            found.append(chance.choice(words))
            length += 1 + len(found[-1])
        chance.shuffle(found) if number % 100 != 7 else None
        yield " ".join(found)[:TEXT_BYTES]


def session_id(number: int) -> str:
    return LONG_ID if number == 0 else f"session-{number:04}"


def seeded_rows() -> Iterator[tuple[str, str]]:
    """Yield session and role of each of the 20,000 messages, spread as conversations are: one after the other."""
    each, more = divmod(MESSAGES - LONG, SESSIONS - 1)
    for number in range(SESSIONS):
        count = LONG if number == 0 else each + (number <= more)
        for place in range(count):
            yield session_id(number), "assistant" if place % 2 else "user"


class Side(Protocol):
    """A store with the same work on it. tasks: how many at once."""

    def open(self, path: Path) -> None: ...

    def close(self) -> None: ...

    def synchronous(self) -> int:
        """Return that setting of the connection that writes; 2 is FULL."""

    def fill(self) -> None:
        """Write the sessions and messages that everything is measured on, one durable append each."""

    def make_long(self, name: str) -> None:
        """Write a session of 2,000 messages in as few transactions as the store knows."""

    def timed(self, step: str, names: list[Any], tasks: int) -> float:
        """Do `step` for each name, `tasks` at once; return seconds."""


class Ours:
    """aip_hermes' coroutines."""

    def __init__(self) -> None:
        from aip_hermes.embedded.session_db import SessionDB

        self._made: Callable[[Path], SessionDB] = SessionDB
        self._runner = asyncio.Runner()

    def open(self, path: Path) -> None:
        self._db: Any = self._made(path)
        self._runner.run(self._db.message_count(LONG_ID))

    def close(self) -> None:
        self._runner.run(self._db.close())

    def synchronous(self) -> int:
        return int(self._runner.run(self._db.write(lambda c: c.execute("PRAGMA synchronous")[0]["synchronous"])))

    def fill(self) -> None:
        self._runner.run(self._fill())

    def make_long(self, name: str) -> None:
        async def make() -> None:
            source = texts(hash_of(name))
            await self._db.create_session(name, "bench")
            await self._db.append_messages_batch(
                name, [{"role": "assistant" if n % 2 else "user", "content": next(source)} for n in range(LONG)]
            )

        self._runner.run(make())

    def timed(self, step: str, names: list[Any], tasks: int) -> float:
        return self._runner.run(self._all(self._work(step), names, tasks))

    async def _fill(self) -> None:
        source = texts(0)
        for number in range(SESSIONS):
            await self._db.create_session(session_id(number), "bench")
        for name, role in seeded_rows():
            await self._db.append_message(name, role, next(source))

    async def _all(self, work: Callable[[Any], Awaitable[object]], names: list[Any], tasks: int) -> float:
        left = iter(names)

        async def worker() -> None:
            for name in left:
                await work(name)

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(tasks)))
        return time.perf_counter() - began

    def _work(self, step: str) -> Callable[[Any], Awaitable[object]]:
        db = self._db

        async def resume(name: str) -> None:
            found = await db.get_messages_as_conversation(await db.resolve_resume_session_id(name))
            assert found

        async def listing(_: object) -> None:
            assert len(await db.list_sessions_rich(limit=50, order_by_last_active=True)) == 50

        async def search(term: str) -> None:
            assert await db.search_messages(term)

        async def delete(name: str) -> None:
            assert await db.delete_session(name)

        return {
            "append": lambda name: db.append_message(name[0], "user", name[1]),
            "create": lambda name: db.create_session(name, "bench"),
            "list": listing,
            "search": search,
            "resume": resume,
            "delete": delete,
        }[step]


class Theirs:
    """hermes-agent's calls; they block, so that several at once are threads."""

    def __init__(self) -> None:
        from hermes_state import SessionDB

        self._made: Callable[[Path], Any] = SessionDB

    def open(self, path: Path) -> None:
        self._db: Any = self._made(path)

    def close(self) -> None:
        self._db.close()

    def synchronous(self) -> int:
        return int(self._db._conn.execute("PRAGMA synchronous").fetchone()[0])

    def fill(self) -> None:
        source = texts(0)
        for number in range(SESSIONS):
            self._db.create_session(session_id(number), "bench")
        for name, role in seeded_rows():
            self._db.append_message(name, role, next(source))

    def make_long(self, name: str) -> None:
        source = texts(hash_of(name))
        self._db.create_session(name, "bench")
        self._db.replace_messages(
            name, [{"role": "assistant" if n % 2 else "user", "content": next(source)} for n in range(LONG)]
        )

    def timed(self, step: str, names: list[Any], tasks: int) -> float:
        work = self._work(step)
        if tasks == 1:
            began = time.perf_counter()
            for name in names:
                work(name)
            return time.perf_counter() - began
        with ThreadPoolExecutor(tasks) as pool:
            ready = threading.Barrier(tasks + 1)
            list_of = [pool.submit(self._some, work, iter_part, ready) for iter_part in parts(names, tasks)]
            ready.wait()
            began = time.perf_counter()
            for future in list_of:
                future.result()
            return time.perf_counter() - began

    @staticmethod
    def _some(work: Callable[[Any], object], names: list[Any], ready: threading.Barrier) -> None:
        ready.wait()
        for name in names:
            work(name)

    def _work(self, step: str) -> Callable[[Any], object]:
        db = self._db

        def resume(name: str) -> None:
            assert db.get_messages_as_conversation(db.resolve_resume_session_id(name))

        def listing(_: object) -> None:
            assert len(db.list_sessions_rich(limit=50, order_by_last_active=True)) == 50

        def search(term: str) -> None:
            assert db.search_messages(term)

        def delete(name: str) -> None:
            assert db.delete_session(name)

        return {
            "append": lambda name: db.append_message(name[0], "user", name[1]),
            "create": lambda name: db.create_session(name, "bench"),
            "list": listing,
            "search": search,
            "resume": resume,
            "delete": delete,
        }[step]


def parts(names: list[Any], tasks: int) -> list[list[Any]]:
    return [names[place::tasks] for place in range(tasks)]


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode()[-6:], "big")


def names_for(step: str, order: dict[str, Any]) -> list[Any]:
    """Return what each of the operations of a round works on; the same on both sides."""
    count, number, term = order["count"], order["round"], order.get("term")
    if step == "create":
        return [f"new-{order['tasks']}-{number}-{place}" for place in range(count)]
    if step == "append":
        source = texts(1_000 + 100 * order["tasks"] + number)
        return [(session_id(1 + place % (SESSIONS - 1)), next(source)) for place in range(count)]
    if step == "delete":
        return [f"doomed-{number}-{place}" for place in range(count)]
    return [term] * count


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def facts(path: Path) -> dict[str, Any]:
    """Return what is there, past the store: counted rows and bytes, and the mode that it writes in."""
    raw = sqlite3.connect(path)
    try:
        return {
            "sessions": raw.execute("SELECT count(*) FROM sessions").fetchone()[0],
            "messages": raw.execute("SELECT count(*) FROM messages").fetchone()[0],
            "bytes": sum(file.stat().st_size for file in path.parent.glob(path.name + "*")),
            "journal_mode": raw.execute("PRAGMA journal_mode").fetchone()[0],
            "sqlite": sqlite3.sqlite_version,
            "python": sys.version.split()[0],
        }
    finally:
        raw.close()


def answered(side: Side, path: Path, order: dict[str, Any]) -> dict[str, Any]:
    step = order["step"]
    if step == "fill":
        side.open(path)
        began = time.perf_counter()
        side.fill()
        seconds = time.perf_counter() - began
        side.close()
        found = facts(path)
        side.open(path)
        return {"seconds": seconds, **found, "synchronous": side.synchronous()}
    if step == "end":
        side.close()
        return {"peak": peak_bytes()}
    names = names_for(step, order)
    if step == "delete":
        for name in names:
            side.make_long(name)
    return {"seconds": side.timed(step, names, order["tasks"])}


def main() -> None:
    kind, path = sys.argv[1], Path(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # a store may talk
    side: Side = Ours() if kind == "ours" else Theirs()
    for line in sys.stdin:
        answers.write(json.dumps(answered(side, path, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
