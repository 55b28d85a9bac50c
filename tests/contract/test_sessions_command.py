"""`aip-hermes sessions` as processes of its own, on folders at rest, served and left by a killed server."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.cli.ending import MENDABLE
from aip_hermes.cli.sessions.documents import lines_of
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.embedded.folder import LOCK_NAME
from aip_hermes.embedded.session_db import SessionDB
from tests.support.processes import AIP_HERMES
from tests.support.session_files import filled_folder, in_store, json_lines, on_terminal, sessions, store_of, told
from tests.support.store_copies import contents

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "look-after-an-embedded-hermes.md"

_KILLED = """
import asyncio, os, sys
from aip_hermes.embedded.session_db import SessionDB

async def work():
    db = SessionDB(sys.argv[1])
    await db.create_session("late", "cli")
    await db.append_message("late", "user", "only in the log")
    os._exit(9)

asyncio.run(work())
"""


def change(folder: Path, statement: str) -> None:
    """Do to the file what no method of ours does."""
    raw = sqlite3.connect(store_of(folder))
    with raw:
        raw.execute(statement)
    raw.close()


@pytest.mark.requirement("sessions-command:reads")
def test_a_folder_at_rest_is_read_and_not_changed(tmp_path: Path) -> None:
    filled_folder(tmp_path)
    before = contents(tmp_path)

    first = sessions("list", "--data", tmp_path, "--limit", "2")
    shown = json.loads(sessions("show", "case-2", "--data", tmp_path).stdout)
    found = json_lines(sessions("search", '"don\'t know"', "--data", tmp_path).stdout)

    assert [row["id"] for row in json_lines(first.stdout)] == ["case-3", "case-2"]
    assert "--offset 2" in first.stderr
    assert shown["session"]["title"] == "Case 2"
    assert [message["content"] for message in shown["messages"]["data"]] == [
        "where is invoice 2?",
        {"aip_hermes:base64": "AP8="},
    ]
    assert {hit["session_id"] for hit in found} == {"case-1", "case-3"}
    assert contents(tmp_path) == before


@pytest.mark.requirement("sessions-command:reads")
def test_a_folder_of_up_is_understood_and_a_terminal_gets_tables(tmp_path: Path) -> None:
    filled_folder(tmp_path / "hermes")
    listed = on_terminal("list", "--data", tmp_path)
    shown = on_terminal("show", "case-1", "--data", tmp_path)
    found = on_terminal("search", "invoice", "--data", tmp_path)
    for text, words in (
        (listed, ("case-1", "Case 3", "done", "open")),
        (shown, ("Case 1", "where is invoice 1?")),
        (found, ("case-3", "invoice")),
    ):
        assert [word for word in words if word not in text] == []
        with pytest.raises(json.JSONDecodeError):
            json.loads(text.splitlines()[0])


@pytest.mark.requirement("sessions-command:reads")
def test_what_a_killed_server_left_in_its_log_is_read_and_nothing_is_changed(tmp_path: Path) -> None:
    filled_folder(tmp_path)
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(store_of(tmp_path))], check=False)
    assert killed.returncode == 9
    before = contents(tmp_path)

    shown = json.loads(sessions("show", "late", "--data", tmp_path).stdout)

    assert [message["content"] for message in shown["messages"]["data"]] == ["only in the log"]
    assert contents(tmp_path) == before


@pytest.mark.requirement("sessions-command:carry")
def test_what_was_exported_comes_back_as_it_was(tmp_path: Path) -> None:
    filled_folder(tmp_path / "a")
    filled_folder(tmp_path / "b", number=0)
    file, again = tmp_path / "all.jsonl", tmp_path / "again.jsonl"

    done = sessions("export", "--all", "--data", tmp_path / "a", "-o", file)
    assert told(done) == {"exported": 3, "messages": 6, "bytes": file.stat().st_size, "file": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    done = sessions("import", file, "--data", tmp_path / "b")
    assert told(done)["imported"] == 3
    sessions("export", "--all", "--data", tmp_path / "b", "-o", again)
    assert again.read_bytes() == file.read_bytes()
    done = sessions("import", file, "--data", tmp_path / "b")
    assert (told(done)["imported"], told(done)["skipped"]) == (0, 3)


@pytest.mark.requirement("sessions-command:carry")
def test_a_file_that_is_there_is_replaced_on_request_only(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path / "a")
    file = tmp_path / "one.jsonl"
    file.write_text("mine", encoding="utf-8")

    refused = sessions("export", "case-1", "--data", folder, "-o", file)
    assert (refused.returncode, refused.stdout, file.read_text(encoding="utf-8")) == (1, "", "mine")
    assert sessions("export", "case-1", "--data", folder, "-o", file, "--force").returncode == 0
    assert [document["id"] for document in json_lines(file.read_text(encoding="utf-8"))] == ["case-1"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a", "one.jsonl"}

    streamed = sessions("export", "case-1", "case-3", "--data", folder, "-o", "-")
    assert [document["id"] for document in json_lines(streamed.stdout)] == ["case-1", "case-3"]
    assert sessions("export", "--data", folder, "-o", file).returncode == 2


@pytest.mark.requirement("sessions-command:carry")
def test_no_export_takes_the_place_of_a_file_that_the_store_needs(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path / "a")
    store, lock = store_of(folder), store_of(folder).with_name(LOCK_NAME)
    lock.touch()
    (tmp_path / "by another name").symlink_to(lock)
    before = {entry.name: entry.read_bytes() for entry in folder.iterdir()}

    logs = [store.with_name(store.name + ending) for ending in ("-wal", "-shm", "-journal")]
    for target in (store, lock, tmp_path / "by another name", *logs):
        refused = sessions("export", "case-1", "--data", folder, "-o", target, "--force")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "may replace" in refused.stderr
    assert {entry.name: entry.read_bytes() for entry in folder.iterdir()} == before


@pytest.mark.requirement("sessions-command:carry")
def test_the_rows_of_a_chain_are_exported_together_and_children_find_their_parents(tmp_path: Path) -> None:
    async def chain(db: SessionDB) -> None:
        await db.create_session("z-root", "cli")
        await db.append_message("z-root", "user", "begins")
        await db.end_session("z-root", "compression")
        await db.create_session("a-tip", "cli", parent_session_id="z-root")

    in_store(tmp_path / "a", chain)
    filled_folder(tmp_path / "b", number=0)
    streamed = sessions("export", "a-tip", "--lineage", "--data", tmp_path / "a", "-o", "-").stdout
    assert [document["id"] for document in json_lines(streamed)] == ["z-root", "a-tip"]

    file = tmp_path / "children-first.jsonl"
    file.write_text("".join(f"{line}\n\n" for line in reversed(streamed.splitlines())), encoding="utf-8")
    done = told(sessions("import", file, "--data", tmp_path / "b"))
    assert (done["imported"], done["detached"]) == (2, 0)
    assert in_store(tmp_path / "b", lambda db: db.resolve_resume_session_id("z-root")) == "a-tip"


@pytest.mark.requirement("sessions-command:broken-file")
def test_one_wrong_line_is_named_and_nothing_is_imported(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path, number=0)
    file = tmp_path / "broken.jsonl"
    good = b'{"id": "good", "messages": []}\n'
    for wrong in (
        b'{"id": "x", \n',
        b'{"id": "\xff"}\n',
        b'["x"]\n',
        b'{"messages": []}\n',
        b'{"id": "x", "messages": [{"role": ""}]}\n',
        b'{"id": "good"}\n',
        b"[" * 100_000 + b"\n",
    ):
        file.write_bytes(good + wrong)
        with pytest.raises(SessionsRefused, match=rf"^{re.escape(str(file))}, line 2: .+"):
            list(lines_of(file))
    done = sessions("import", file, "--data", folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"aip-hermes: {re.escape(str(file))}, line 2: .+\n", done.stderr), done.stderr
    assert sessions("list", "--all", "--data", folder).stdout == ""


@pytest.mark.requirement("sessions-command:prune")
def test_a_prune_removes_what_its_filters_mean_and_says_what_stays(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path)
    prune = ("prune", "--data", folder, "--older-than", "0s")

    assert told(sessions(*prune, "--title-like", "C_se"))["total"] == 0
    counted = sessions(*prune, "--source", "api_server", "--dry-run")
    assert told(counted) == {"dry_run": True, "total": 1, "open": 2}
    assert counted.stderr.rstrip().endswith("stay: 2")
    assert told(sessions("prune", "--data", folder, "--older-than", "1h"))["total"] == 0
    assert told(sessions(*prune, "--min-messages", "2", "--not-archived")) == {"dry_run": False, "total": 1, "open": 2}
    assert {row["id"] for row in json_lines(sessions("list", "--data", folder).stdout)} == {"case-2", "case-3"}
    assert sessions("prune", "--data", folder, "--older-than", "soon").returncode == 2
    (noted,) = in_store(folder, lambda db: db.list_removals())
    assert (noted["session_id"], noted["cause"], noted["actor"]) == ("case-1", "prune", "command")


@pytest.mark.requirement("sessions-command:doctor")
def test_a_damaged_index_is_a_failure_that_a_repair_mends(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path)
    healthy = json.loads(sessions("doctor", "--json", "--data", folder).stdout)
    assert healthy["ok"]
    names = ["server", "store", "integrity", "contents", "index", "leases", "disk"]
    assert [check["check"] for check in healthy["checks"]] == names

    in_store(folder, lambda db: db.search_messages("invoice"))
    change(folder, "UPDATE messages_fts_data SET block = x'ffffffffffffffffffff'")
    in_store(folder, lambda db: db.search_messages("invoice"))

    sick = sessions("doctor", "--data", folder)
    assert sick.returncode == 1
    assert [line.split()[1] for line in sick.stdout.splitlines() if line.startswith("FAIL")] == ["index"]
    assert len(json_lines(sessions("search", "invoice", "--data", folder).stdout)) == 3
    mended = sessions("doctor", "--repair", "--data", folder)
    assert (mended.returncode, "FAIL" in mended.stdout) == (0, False)
    found = sessions("search", "invoice", "--data", folder)
    assert (len(json_lines(found.stdout)), found.stderr) == (3, "")


@pytest.mark.requirement("sessions-command:mendable")
def test_a_number_that_makes_no_sense_is_one_sentence_and_removes_nothing(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path)
    before = sessions("list", "--all", "--data", folder).stdout
    prune = ("prune", "--data", folder, "--older-than", "0s")

    for arguments in (
        (*prune, "--min-cost", "nan"), (*prune, "--title-like", "x" * 2_000),
        ("list", "--data", folder, "--offset", "9" * 30), ("search", "x", "--data", folder, "--offset", "9" * 30),
    ):  # fmt: skip
        refused = sessions(*arguments)
        assert (refused.returncode in (1, 2), refused.stdout, "Traceback" in refused.stderr) == (True, "", False)
    assert told(sessions(*prune, "--dry-run", "--max-tokens", "9" * 30))["total"] == 1
    assert sessions("list", "--all", "--data", folder).stdout == before


@pytest.mark.requirement("sessions-command:progress")
def test_a_terminal_shows_how_far_it_is_and_a_pipe_does_not(tmp_path: Path) -> None:
    folder, file = filled_folder(tmp_path / "data"), tmp_path / "all.jsonl"
    for arguments, verb in (
        (("export", "--all", "-o", file), "exporting"),
        (("import", file), "importing"),
        (("prune", "--older-than", "0s"), "pruning"),
        (("doctor", "--repair"), "indexing"),
    ):
        assert verb in on_terminal(*arguments, "--data", folder)
    assert "exporting" not in sessions("export", "--all", "-o", "-", "--data", folder).stderr


@pytest.mark.requirement("sessions-command:mendable")
def test_what_a_person_can_mend_is_one_sentence(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path / "ours")
    (tmp_path / "empty").mkdir()
    for name in ("newer", "older"):
        in_store(tmp_path / name, lambda db: db.get_session(""))
    change(tmp_path / "newer", "INSERT INTO schema_migrations VALUES (9999, 'x', 'x', 1)")
    change(tmp_path / "older", "DELETE FROM schema_migrations WHERE version > 2")
    (tmp_path / "foreign").mkdir()
    change(tmp_path / "foreign", "CREATE TABLE sessions (id TEXT)")

    for arguments in (
        ("list", "--data", tmp_path / "nowhere"),
        ("list", "--data", tmp_path / "empty"),
        ("list", "--data", tmp_path / "foreign"),
        ("search", "x", "--data", tmp_path / "newer"),
        ("show", "x", "--data", tmp_path / "older"),
        ("show", "nobody", "--data", folder),
        ("show", "case", "--data", folder),
        ("import", tmp_path / "none.jsonl", "--data", folder),
        ("export", "--all", "--data", folder, "-o", tmp_path / "no" / "file"),
        ("prune", "--older-than", "1d", "--data", tmp_path / "newer"),
    ):
        done = sessions(*arguments)
        assert (done.returncode, done.stdout) == (1, ""), arguments
        assert re.fullmatch(r"aip-hermes: [^\n]+\n", done.stderr), done.stderr
    assert not (tmp_path / "nowhere").exists()
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.requirement("sessions-command:mendable")
def test_a_pipe_that_nobody_reads_is_said(tmp_path: Path) -> None:
    folder = filled_folder(tmp_path)
    for arguments in (["list"], ["export", "--all", "-o", "-"]):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            done = subprocess.run(
                [*AIP_HERMES, "sessions", *arguments, "--data", str(folder)],
                stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            )  # fmt: skip
        assert done.returncode == 1
        assert re.fullmatch(r"aip-hermes: [^\n]+\n", done.stderr), done.stderr


@pytest.mark.requirement("sessions-command:mendable")
@pytest.mark.parametrize(("module", "name"), MENDABLE.items())
def test_each_failure_that_can_be_mended_is_where_it_is_looked_for(module: str, name: str) -> None:
    found = getattr(import_module(module), name)
    assert (found.__module__, issubclass(found, Exception)) == (module, True)


@pytest.mark.requirement("sessions-command:light")
@pytest.mark.parametrize("arguments", [["--help"], ["sessions", "--help"], ["sessions", "prune", "--help"]])
def test_the_help_loads_neither_store_nor_server(arguments: list[str]) -> None:
    heavy = ("pydantic", "httpx", "starlette", "uvicorn", "rich", "aiosqlite", "sqlite3", "structlog")
    program = (
        "import sys\nfrom aip_hermes.cli.aip_hermes import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.requirement("docs:sessions")
def test_the_commands_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    filled_folder(tmp_path / "hermes-data")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    answers: dict[str, Any] = {}
    for command in commands:
        assert command[:2] == ["aip-hermes", "sessions"]
        done = sessions(*command[2:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        answers[command[2]] = done.stdout
    assert sorted(answers) == ["doctor", "export", "import", "list", "prune", "search", "show"]
    assert json.loads(answers["import"])["skipped"] == 3
    assert json.loads(answers["prune"])["total"] == 0
