"""Ctrl-C while a command waits: it ends by itself, with its exit code, and never with a traceback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import Database, back_up
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from aip_hermes.settings import Settings
from tests.support import client_answers as answers
from tests.support.client_command import aipctl_environment
from tests.support.client_stub_server import Answer, running_stub
from tests.support.many_commands import running_commands
from tests.support.server_serving import written_settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
ASKING = [row for row in re.findall(r"^\| `(aipctl [^`]+)` \|", PAGE, flags=re.MULTILINE) if " URL" in row]
DECISION = {
    "approval_id": "appr_1",
    "decision": "denied",
    "decided_at": "2030-01-01T00:00:00Z",
    "approver": {"id": "human:b", "kind": "human"},
}
MORE = {
    "receipt get": [["--chain-id", "approval:appr_1"]],
    "transaction get": [["--transaction-id", "t1"]],
    "approval approve": [["--reason", "checked"]],
    "approval deny": [["--reason", "checked"]],
    "approval revoke": [["--reason", "checked", "--target", "decision_of_reviewer"]],
    "action call": [["--action-id", "act_1"], ["--action-id", "act_1", "--mode", "streaming", "--follow"]],
    "action events": [[], ["--follow"]],
    "action reconcile": [[], ["--all-uncertain"]],
    "action result": [[], ["--wait-ms", "60000"]],
    "events list": [[], ["--follow"]],
}


def order(folder: Path, program: str, words: list[str], **members: Any) -> dict[str, Any]:
    number = len(list(folder.glob("*.order")))
    (folder / f"{number}.order").touch()
    return {
        "program": program,
        "words": words,
        "stdout": str(folder / f"{number}.out"),
        "stderr": str(folder / f"{number}.err"),
        **members,
    }


def said(given: dict[str, Any]) -> str:
    return Path(given["stderr"]).read_text(encoding="utf-8")


def printed(given: dict[str, Any]) -> str:
    return Path(given["stdout"]).read_text(encoding="utf-8")


def words_of(command: str, url: str, more: list[str]) -> list[str]:
    name = " ".join(word for word in command.split()[1:] if word.islower())
    given = {
        "URL": url,
        "ACTION_ID": "act_1",
        "AIP_SESSION_ID": "sess_1",
        "APPROVAL_ID": "appr_1",
        "CAPABILITY": "cap:x",
        "SESSION_ID": "s1",
        "J": json.dumps(DECISION if name == "approval decide" else answers.approval_request()),
    }
    words = [word for word in command.split()[1:] if not (word.startswith("[") and "--all-uncertain" in more)]
    return [*(given.get(word.strip("[]"), word) for word in words), *more]


@pytest.mark.requirement("commands:interrupt:waiting")
async def test_every_command_that_waits_for_a_server_ends_with_130(tmp_path: Path) -> None:
    rows = [
        (command, more)
        for command in ASKING
        for more in MORE.get(" ".join(word for word in command.split()[1:] if word.islower()), [[]])
    ]
    assert len(rows) > 20
    with ExitStack() as stack:
        stubs = [stack.enter_context(running_stub(lambda _: Answer(fate="never"))) for _ in rows]
        orders = [
            order(tmp_path, "aipctl", words_of(command, stub.url, more))
            for (command, more), stub in zip(rows, stubs, strict=True)
        ]
        async with running_commands(orders, env=aipctl_environment()) as commands:
            for pid, stub in zip(commands.pids, stubs, strict=True):
                await asyncio.to_thread(stub.wait_for_request)
                os.kill(pid, signal.SIGINT)
            statuses = await commands.statuses()
    for (command, more), given, status in zip(rows, orders, statuses, strict=True):
        assert (command, more, status) == (command, more, 130)
        assert "interrupted" in said(given), command
        assert "Traceback" not in said(given), command
        assert printed(given) == "", command


STEPS = 6
"""How many places of a command are interrupted, evenly over its whole way."""


def installed(folder: Path) -> Settings:
    """An installation with a store that holds something, and a backup of it beside."""
    folder.mkdir()
    settings = written_settings(folder)
    settings.store.path.parent.mkdir(mode=0o700)

    async def fill() -> None:
        async with Database(settings.store.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
            await database.write(lambda connection: connection.execute("SELECT 1"))

    asyncio.run(fill())
    back_up(settings.store.path, folder / "backup.db", migrations=MIGRATIONS, application_id=APPLICATION_ID)
    return settings


LOCAL = {
    "doctor": ["doctor", "--config", "{0}/aip-hermes.toml", "--json"],
    "prune": ["prune", "--config", "{0}/aip-hermes.toml", "--older-than", "30d"],
    "backup": ["backup", "--config", "{0}/aip-hermes.toml", "{0}/copy.db"],
    "restore": ["restore", "--config", "{0}/aip-hermes.toml", "{0}/backup.db"],
}


async def ended(orders: list[dict[str, Any]]) -> list[int]:
    async with running_commands(orders) as commands:
        return await commands.statuses()


@pytest.mark.requirement("commands:interrupt:anywhere")
def test_wherever_it_is_interrupted_a_command_ends_without_a_traceback_and_leaves_whole_files(tmp_path: Path) -> None:
    store = installed(tmp_path / "first").store.path.relative_to(tmp_path / "first")

    def given(command: str, number: int, **members: Any) -> dict[str, Any]:
        place = Path(shutil.copytree(tmp_path / "first", tmp_path / f"{command}{number}"))
        return order(
            tmp_path,
            "aip-hermes",
            [word.format(place) for word in LOCAL[command]],
            place=place,
            command=command,
            **members,
        )

    whole = [given(command, STEPS, count=str(tmp_path / f"{command}.count")) for command in LOCAL]
    ordinary = dict(zip(LOCAL, asyncio.run(ended(plain(whole))), strict=True))
    cut = [
        given(command, number, signal=signal.SIGINT, step=max(1, steps * number // STEPS))
        for command in LOCAL
        for steps in [int((tmp_path / f"{command}.count").read_text(encoding="ascii"))]
        for number in range(STEPS)
    ]
    statuses = asyncio.run(ended(plain(cut)))
    assert {one["command"] for one, status in zip(cut, statuses, strict=True) if status == 130} == LOCAL.keys()
    for one, status in zip(cut, statuses, strict=True):
        assert status in (130, ordinary[one["command"]])
        assert "Traceback" not in said(one)
        assert printed(one) == "" or json.loads(printed(one))
        assert status == 130 or printed(one)
        for file in (one["place"] / store, *one["place"].glob("copy.db")):
            with closing(sqlite3.connect(file)) as raw:
                assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                assert raw.execute("SELECT count(*) FROM actions").fetchone() == (0,)


def plain(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what only the test knows."""
    return [{name: value for name, value in one.items() if name not in ("place", "command")} for one in orders]


def works_on(pid: int, store: Path) -> bool:
    """Whether the process has opened the store for writing, in a thread of its own."""
    opened = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            opened.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return f"{store}-wal" in opened and len(os.listdir(f"/proc/{pid}/task")) > 1


@pytest.mark.requirement("commands:interrupt:waiting")
async def test_a_command_that_waits_for_another_ones_lock_or_endpoint_ends_within_seconds(tmp_path: Path) -> None:
    locked, lonely = await asyncio.to_thread(lambda: (installed(tmp_path / "a"), installed(tmp_path / "b")))
    with (
        running_stub(lambda _: Answer(fate="never")) as stub,
        closing(sqlite3.connect(locked.store.path, isolation_level=None)) as raw,
    ):
        raw.execute("BEGIN IMMEDIATE")
        text = lonely.path.read_text(encoding="utf-8").replace("http://127.0.0.1:9/", stub.url)
        lonely.path.write_text(text, encoding="utf-8")
        orders = [
            order(tmp_path, "aip-hermes", ["prune", "--config", str(locked.path), "--older-than", "30d"]),
            order(tmp_path, "aip-hermes", ["doctor", "--config", str(lonely.path)]),
        ]
        async with asyncio.timeout(30), running_commands(orders) as commands:
            await asyncio.to_thread(stub.wait_for_request)
            while not works_on(commands.pids[0], locked.store.path):
                await asyncio.to_thread(os.sched_yield)
            for pid in commands.pids:
                os.kill(pid, signal.SIGINT)
            statuses = await commands.statuses()
        assert raw.in_transaction
    assert statuses == [130, 130]
    assert [said(given) for given in orders] == ["aip-hermes: stopped\n"] * 2
