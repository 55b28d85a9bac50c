"""`aip-hermes migrate` on the store of sessions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from aip_hermes.database import OwnerLock
from aip_hermes.embedded.folder import LOCK_NAME
from tests.support.processes import AIP_HERMES


def migrate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*AIP_HERMES, "migrate", "--store", "sessions", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.requirement("sessions:postgres:migrate")
def test_a_shared_store_of_sessions_is_checked_and_then_made_once(postgres_dsn: str) -> None:
    before = migrate("--dsn", postgres_dsn, "--check")
    assert (before.returncode, before.stdout) == (1, "")
    assert "holds no store of this program yet" in before.stderr

    made, again = migrate("--dsn", postgres_dsn), migrate("--dsn", postgres_dsn, "--check")
    assert (made.returncode, again.returncode) == (0, 0), made.stderr + again.stderr
    assert json.loads(made.stdout) == json.loads(again.stdout)
    assert json.loads(made.stdout)["ready"] is True


@pytest.mark.requirement("sessions:postgres:migrate")
def test_a_file_that_an_endpoint_has_is_left_to_it(tmp_path: Path) -> None:
    with OwnerLock(tmp_path, name=LOCK_NAME):
        done = migrate("--dsn", tmp_path / "hermes.db")
    assert done.returncode == 1
    assert not (tmp_path / "hermes.db").exists()
    assert migrate("--dsn", tmp_path / "hermes.db").returncode == 0
