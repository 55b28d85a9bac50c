"""The operator's commands against real processes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from aip_hermes.cli.prune import age_ms
from tests.support.processes import AIP_HERMES, run_aipctl, running_up, stop

CREATE = "cap:hermes_agent:primary:session_create"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*AIP_HERMES, *arguments], capture_output=True, text=True, timeout=60, check=False)


def answer(*arguments: str) -> dict[str, Any]:
    """Run a command that must succeed and return the one JSON line on its stdout."""
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def create(ready: dict[str, Any], session_id: str) -> None:
    token = ["--native-bearer-token-file", ready["token_files"]["requester"]]
    given = ["--action-id", f"act_{session_id}", "--idempotency-key", session_id]
    body = ["--input", json.dumps({"body": {"id": session_id}})]
    done = run_aipctl([*token, "action", "call", ready["aip_url"], CREATE, *given, *body])
    assert done.returncode == 0, done.stderr


def known(ready: dict[str, Any], session_id: str) -> bool:
    token = ["--native-bearer-token-file", ready["token_files"]["requester"]]
    done = run_aipctl([*token, "action", "status", ready["aip_url"], f"act_{session_id}"])
    return '"completed"' in done.stdout


@pytest.mark.requirement("operations:commands", "restore:needs-the-folder", "prune:thin-edge")
def test_a_backup_of_a_running_server_is_restored_and_served_on(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "aip.backup"
    config = ["--config", str(folder / "aip-hermes.toml")]
    with running_up(folder, log=tmp_path / "up.log") as (process, ready):
        create(ready, "kept")
        assert answer("backup", *config, str(backup))["bytes"] == backup.stat().st_size
        create(ready, "later")
        refused = command("restore", *config, str(backup))
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "is in use by process" in refused.stderr
        counted = answer("prune", *config, "--older-than", "1d", "--dry-run")
        assert (counted["dry_run"], counted["rows"]["actions"]) == (True, 0)
        pruned = answer("prune", *config, "--older-than", "0s")
        assert pruned["dry_run"] is False
        assert known(ready, "later")  # its fence still answers
        assert stop(process, seconds=10) == 0
    done = answer("restore", *config, str(backup))
    assert Path(done["kept"]).is_file()
    with running_up(folder, log=tmp_path / "up.log") as (_, ready):
        assert (known(ready, "kept"), known(ready, "later")) == (True, False)
        create(ready, "after")


BAD_AGES = ("30", "d", "-1d", "1y", "", "\u0663d", "0.5d", "9999999d")


@pytest.mark.requirement("prune:thin-edge")
def test_an_age_that_is_none_is_a_usage_error_and_a_missing_store_stays_missing(tmp_path: Path) -> None:
    assert command("init", str(tmp_path / "aip")).returncode == 0
    config = ["--config", str(tmp_path / "aip" / "aip-hermes.toml")]
    for age in BAD_AGES:
        with pytest.raises(click.BadParameter):
            age_ms(age)
    assert (age_ms("30d"), age_ms("90m")) == (2_592_000_000, 5_400_000)
    done = command("prune", *config, "--older-than", "30")
    assert (done.returncode, done.stdout) == (2, "")
    for arguments in (["prune", *config, "--older-than", "30d"], ["backup", *config, str(tmp_path / "copy")]):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "aip" / "data").exists()
    assert not (tmp_path / "copy").exists()
