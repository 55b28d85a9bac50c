"""`aip-hermes sessions` beside a running server, and stopped in the middle."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import finish, start, stop
from tests.support.session_files import filled_folder, json_lines, sessions, store_of, told

MANY = 4_000
PER_SESSION = 2


@contextmanager
def served(folder: Path, *, log: Path) -> Iterator[httpx.Client]:
    """Serve a folder; yield a client of its endpoint."""
    process = start(["hermes", "--data", str(folder), "--port", "0"], log=log)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        key = Path(ready["hermes_key_file"]).read_text(encoding="utf-8").strip()
        with httpx.Client(
            base_url=ready["hermes_url"], headers={"Authorization": f"Bearer {key}"}, timeout=30
        ) as client:
            yield client
    finally:
        stop(process)


@pytest.mark.requirement("sessions-command:reads", "sessions-command:carry", "sessions-command:doctor")
def test_a_running_server_is_read_beside_and_takes_turns_with_who_writes(tmp_path: Path) -> None:
    folder, file = filled_folder(tmp_path / "data"), tmp_path / "all.jsonl"
    with served(folder, log=tmp_path / "log") as client:
        made = client.post("/api/sessions", json={"id": "fresh", "title": "Fresh"})
        assert made.status_code in (200, 201)
        listed = json_lines(sessions("list", "--data", folder).stdout)
        assert "fresh" in {row["id"] for row in listed}
        assert told(sessions("export", "--all", "--data", folder, "-o", file))["exported"] == 4

        looked = sessions("doctor", "--json", "--data", folder)
        server = json.loads(looked.stdout)["checks"][0]
        assert (looked.returncode, "serves" in server["detail"]) == (0, True)
        refused = sessions("doctor", "--repair", "--data", folder)
        assert (refused.returncode, refused.stdout) == (1, "")

        assert told(sessions("prune", "--older-than", "0s", "--data", folder))["total"] == 1
        assert client.get("/api/sessions/case-1").status_code == 404
        assert told(sessions("import", file, "--data", folder))["imported"] == 1
        assert client.get("/api/sessions/case-1").status_code == 200
        turn = client.post("/api/sessions/case-1/chat", json={"message": "and now?"})
        assert turn.status_code == 200
        messages = client.get("/api/sessions/case-1/messages").json()["data"]
        assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]


def lines(number: int) -> Iterator[str]:
    for one in range(number):
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"w{turn}"} for turn in range(PER_SESSION)]
        yield json.dumps({"id": f"s{one:05}", "source": "cli", "started_at": 1.0, "messages": messages}) + "\n"


def counted(raw: sqlite3.Connection) -> tuple[int, int]:
    (row,) = raw.execute("SELECT (SELECT COUNT(*) FROM sessions), (SELECT COUNT(*) FROM messages)")
    return int(row[0]), int(row[1])


@pytest.mark.requirement("sessions-command:stopped")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_an_import_that_is_stopped_leaves_whole_sessions_and_goes_on_when_it_is_run_again(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    folder, file = filled_folder(tmp_path / "data", number=0), tmp_path / "many.jsonl"
    with file.open("w", encoding="utf-8") as text:
        text.writelines(lines(MANY))
    process = start(["sessions", "import", str(file), "--data", str(folder)])
    with closing(sqlite3.connect(store_of(folder), isolation_level=None, timeout=30)) as raw:
        # Whoever has the write lock between two of its transactions has it stopped in the middle.
        deadline = time.monotonic() + 60
        found = 0
        while found == 0:
            assert time.monotonic() < deadline
            raw.execute("BEGIN IMMEDIATE")
            found = counted(raw)[0]
            if found == 0:
                raw.execute("ROLLBACK")
        assert found < MANY
        process.send_signal(number)
        code, out, err = finish(process)
        raw.execute("ROLLBACK")
        assert (code, out) == (status, ""), err
        assert "Traceback" not in err
        kept = counted(raw)
        assert kept == (found, found * PER_SESSION)

    done = told(sessions("import", file, "--data", folder))
    assert (done["imported"], done["skipped"]) == (MANY - found, found)
    assert json.loads(sessions("doctor", "--json", "--data", folder).stdout)["ok"]
