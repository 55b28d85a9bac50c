"""The commands of the page about several servers, on a database of the test's own."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.pages import fenced
from tests.support.processes import AIP_HERMES, start, stop
from tests.support.server_serving import written_settings

PAGE = "docs/how-to/several-servers.md"
DSN = "postgresql://aip@db.example:5432/aip"


def run(line: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AIP_HERMES, *shlex.split(line, comments=True)[1:]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )


@pytest.mark.requirement("docs:blocks-run", "shared:migrate")
def test_the_commands_of_the_page_run_as_they_stand(tmp_path: Path, postgres_dsn: str) -> None:
    [settings] = [block.text for block in fenced(PAGE, "toml")]
    assert DSN in settings
    pool = settings[settings.index("[database.postgres]") :]
    written_settings(tmp_path, store=postgres_dsn, extra=pool)
    check, migrate, doctor, serve = fenced(PAGE, "sh")[1].text.replace(DSN, postgres_dsn).splitlines()

    refused = run(check, folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "holds no store of this program yet" in refused.stderr
    for _ in range(2):
        done = run(migrate, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    ready = run(check, folder=tmp_path)
    assert (ready.returncode, json.loads(ready.stdout)["ready"]) == (0, True)
    looked = run(doctor, folder=tmp_path).stdout
    assert re.search(r"store.* is this program's, of its newest schema", looked), looked

    words = shlex.split(serve.replace("aip-hermes.toml", str(tmp_path / "aip-hermes.toml")), comments=True)
    process = start(words[1:], log=tmp_path / "server.log")
    try:
        assert process.stdout is not None
        assert "aip_url" in process.stdout.readline()
    finally:
        stop(process)


@pytest.mark.requirement("shared:files-only")
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_copies_are_for_files_and_the_refusal_says_what_copies_a_database(tmp_path: Path, command: str) -> None:
    written_settings(tmp_path, store="postgresql://aip@127.0.0.1:9/aip")
    (tmp_path / "copy").write_text("")
    done = run(f"aip-hermes {command} --config aip-hermes.toml copy", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pg_dump" in done.stderr


@pytest.mark.requirement("shared:away")
@pytest.mark.parametrize("command", ["serve --config", "prune --older-than 1d --config", "doctor --config"])
def test_a_database_that_is_not_there_is_one_sentence(tmp_path: Path, command: str) -> None:
    written_settings(tmp_path, store="postgresql://aip@127.0.0.1:9/aip")
    done = run(f"aip-hermes {command} aip-hermes.toml", folder=tmp_path)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "cannot be reached" in said
    assert "Traceback" not in said
