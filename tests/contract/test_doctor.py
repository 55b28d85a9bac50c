"""The doctor on installations that are sound, and on ones with a single thing wrong."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aip_hermes.cli.doctor.command import examine, run_doctor
from aip_hermes.cli.doctor.finding import Finding
from aip_hermes.cli.doctor.storage import store as look_at_store
from aip_hermes.database import Database
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from aip_hermes.settings import Settings
from tests.support.embedded_endpoint import KEY, Running, served
from tests.support.server_serving import action, serving, written_settings
from tests.support.server_site import write_secret
from tests.support.store_copies import contents

SECRETS = (KEY, "requester-0123456789", "reviewer-0123456789")


def everything(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below, the engine's index of a log left out: that one is memory."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def of(found: list[Finding], check: str) -> Finding:
    """Return the one finding of a check that is not ok, or its only one."""
    mine = [finding for finding in found if finding.check == check]
    return next((finding for finding in mine if finding.level != "ok"), mine[0])


async def install(folder: Path, url: str = "http://127.0.0.1:9/", *, port: int = 0) -> Settings:
    settings = written_settings(folder, endpoint_url=url, port=port)
    write_secret(folder / "hermes.key", KEY)
    return settings


def origin(hermes: Running) -> str:
    return str(hermes.client.base_url).rstrip("/") + "/"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.requirement("doctor:healthy", "doctor:changes-nothing")
async def test_a_sound_installation_is_all_ok_before_while_and_after_its_server_runs(tmp_path: Path) -> None:
    folder = tmp_path / "aip"
    async with served(tmp_path / "hermes") as hermes:
        settings = await install(folder, origin(hermes), port=free_port())
        for state in ("before", "while", "after"):
            if state == "while":
                async with serving(settings) as (client, _):
                    answered = await client.post("/aip/v1/messages", json=action("act_1"))
                    assert answered.status_code == 200
                    before = everything(folder)
                    found = await examine(settings.path, clock=SystemClock())
                    assert everything(folder) == before
                assert "our server answers (process" in of(found, "port").detail
            else:
                before = everything(folder)
                found = await examine(settings.path, clock=SystemClock())
                assert everything(folder) == before
            assert [finding for finding in found if finding.level != "ok"] == [], state
            said = " ".join(finding.detail + finding.remedy for finding in found)
            assert not any(secret in said for secret in SECRETS)


def replaced(old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        file = folder / "aip-hermes.toml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def mode(name: str, bits: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).chmod(bits)


def no_one_else(folder: Path) -> None:
    file = folder / "approval-authority.json"
    entries = json.loads(file.read_text(encoding="utf-8"))
    entries[0]["principal_id"] = "agent:local:requester"
    file.write_text(json.dumps(entries), encoding="utf-8")


SEEING = '"approval:export", "approval:sensitive"'

WRONG: list[tuple[str, str, Callable[[Path], object], str]] = [
    ("tokens", "fail", mode("tokens/requester", 0o644), "chmod 600"),
    ("tokens", "fail", lambda folder: (folder / "tokens" / "reviewer").unlink(), "reviewer"),
    ("tokens", "warn", replaced("# expires_at = 2031", "expires_at = 2001"), "SIGHUP"),
    ("authority", "fail", mode("approval-authority.json", 0o666), "chmod go-w"),
    ("authority", "fail", lambda folder: (folder / "approval-authority.json").write_text("[]"), "authority"),
    ("authority", "fail", replaced("authority_file = ", "# authority_file = "), "authority_file"),
    ("reviewers", "fail", no_one_else, "the requester may never decide"),
    ("reviewers", "fail", replaced("authority_file = ", "# authority_file = "), "may never decide"),
    ("reviewers", "warn", replaced(SEEING, '"approval:write"'), "approval:sensitive"),
    ("endpoint", "fail", lambda _: None, "start that Hermes"),
    ("settings", "fail", mode(".", 0o777), "chmod o-w"),
    ("tokens", "fail", mode("tokens", 0o777), "chmod o-w"),
    ("authority", "fail", mode(".", 0o777), "others can replace"),
    ("data", "warn", mode("data", 0o755), "chmod 700"),
    ("store", "fail", lambda folder: (folder / "data" / "aip.sqlite3").write_text("no store" * 99), "restore"),
    ("settings", "fail", replaced("[limits]", "[limit]"), "correct"),
    ("settings", "fail", mode("aip-hermes.toml", 0o666), "chmod"),
]


@pytest.mark.requirement("doctor:finds", "doctor:changes-nothing")
@pytest.mark.parametrize(("check", "level", "spoil", "said"), WRONG, ids=[f"{w[0]}-{n}" for n, w in enumerate(WRONG)])
async def test_one_thing_that_is_wrong_is_one_line_with_its_remedy(
    tmp_path: Path, check: str, level: str, spoil: Callable[[Path], object], said: str
) -> None:
    await install(tmp_path)
    (tmp_path / "data").mkdir(mode=0o700)
    spoil(tmp_path)
    before = everything(tmp_path)
    found = await examine(tmp_path / "aip-hermes.toml", clock=SystemClock())
    assert everything(tmp_path) == before
    finding = of(found, check)
    assert (finding.level, finding.remedy != "") == (level, True)
    assert said in finding.detail + finding.remedy
    assert all("\n" not in finding.detail for finding in found)


@pytest.mark.requirement("doctor:finds")
async def test_a_wrong_key_is_told_from_a_server_that_is_away_and_never_said(tmp_path: Path) -> None:
    async with served(tmp_path / "hermes") as hermes:
        settings = await install(tmp_path / "aip", origin(hermes))
        write_secret(tmp_path / "aip" / "hermes.key", "another-key-0123456789")
        finding = of(await examine(settings.path, clock=SystemClock()), "endpoint")
    assert finding.level == "fail"
    assert "refuses the key (HTTP 401" in finding.detail
    assert "another-key" not in finding.detail + finding.remedy


@pytest.mark.requirement("doctor:finds")
async def test_a_port_that_another_program_has_is_a_failure(tmp_path: Path) -> None:
    async with served(tmp_path / "hermes") as hermes:
        port = hermes.client.base_url.port
        assert port is not None
        settings = await install(tmp_path / "aip", port=port)
        finding = of(await examine(settings.path, clock=SystemClock()), "port")
    assert (finding.level, str(settings.path) in finding.remedy) == ("fail", True)


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Let another process have a data folder; yield its id."""
    folder.mkdir(mode=0o700)
    arguments = [sys.executable, "-m", "tests.support.folder_holder", str(folder)]
    holding = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "held\n"
        yield holding.pid
    finally:
        holding.communicate()


@pytest.mark.requirement("doctor:finds")
@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="this system does not tell who listens")
async def test_a_server_of_another_installation_is_not_taken_for_the_one_that_has_the_folder(tmp_path: Path) -> None:
    async with served(tmp_path / "hermes") as hermes:
        theirs = await install(tmp_path / "theirs", origin(hermes), port=free_port())
        mine = await install(tmp_path / "mine", origin(hermes), port=theirs.server.port)
        with held(tmp_path / "mine" / "data") as pid:
            async with serving(theirs):
                finding = of(await examine(mine.path, clock=SystemClock()), "port")
    assert finding.level == "warn"
    assert f"process {pid} has the data folder" in finding.detail


INSERT = """INSERT INTO actions (tenant, action_id, capability_id, connector_id, principal_id, principal, content_hash,
    input_hash, read_only, attempt, state, created_at, claimed_at, reserved_until, updated_at, uncertain)
VALUES ('', :id, 'c', 'c', 'p', '{}', 'h', 'h', 0, 1, :state, 1, 1, 1, 1, :uncertain)"""


@pytest.mark.requirement("doctor:finds")
async def test_what_is_stuck_or_uncertain_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "aip.sqlite3"
    async with Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
        for number, (state, uncertain) in enumerate((("running", 0), ("failed", 1), ("completed", 0))):
            row = {"id": f"act_{number}", "state": state, "uncertain": uncertain}
            await database.write(lambda connection, row=row: connection.execute(INSERT, row))  # type: ignore[misc]
    found = list(look_at_store(path, None, clock=SystemClock()))
    assert {finding.check: finding.level for finding in found} == {
        "store": "ok", "integrity": "ok", "contents": "ok", "leases": "warn", "uncertain": "warn",
    }  # fmt: skip
    assert of(found, "contents").detail.startswith("3 actions; 0 queued, 1 running")


@pytest.mark.requirement("doctor:finds")
async def test_a_damaged_store_is_found_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "aip.sqlite3"
    async with Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
        await database.write(lambda connection: connection.execute("SELECT 1"))
    raw = sqlite3.connect(path)
    page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'message_ids'").fetchone()[0]
    raw.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    before = contents(tmp_path)
    finding = of(list(look_at_store(path, None, clock=SystemClock())), "integrity")
    assert (finding.level, "restore" in finding.remedy) == ("fail", True)
    assert contents(tmp_path) == before


@pytest.mark.requirement("doctor:json")
@pytest.mark.parametrize("spoil", [lambda _: None, replaced("[limits]", "[limit]")], ids=["readable", "unreadable"])
async def test_json_is_one_object_whatever_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Path], object]
) -> None:
    await install(tmp_path)
    spoil(tmp_path)
    status = await run_doctor(config=tmp_path / "aip-hermes.toml", as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (status, answer["ok"]) == (1, False)
    assert all(set(check) == {"check", "level", "detail", "remedy"} for check in answer["checks"])
    assert all((check["level"] == "ok") == (check["remedy"] == "") for check in answer["checks"])
