"""What is missing when a command of `aip-hermes` begins: one line that names it and says what to do."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.processes import finish, running_up, start


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings whose server never ran, a folder of a Hermes that never ran, and a token of nobody's."""
    folder = tmp_path_factory.mktemp("missing")
    status, _, err = finish(start(["init", str(folder / "aip")]))
    assert status == 0, err
    token = folder / "token"
    token.write_text("a-token-of-enough-characters", encoding="utf-8")
    token.chmod(0o600)
    return folder


@pytest.mark.requirement("mistakes:one-sentence")
@pytest.mark.parametrize(
    ("line", "named", "step"),
    [
        ("backup --config {home}/aip/aip-hermes.toml {home}/copy", "data/aip.sqlite3 does not exist", "first start"),
        (
            "prune --config {home}/aip/aip-hermes.toml --older-than 1d",
            "data/aip.sqlite3 does not exist",
            "first start",
        ),
        (
            "restore --config {home}/aip/aip-hermes.toml {home}/nope",
            "nope does not exist",
            "a file that `backup` wrote",
        ),
        ("verify --check {home}/nope.json", "nope.json: no such file", "compare the name"),
        (
            "verify http://127.0.0.1:9 --token-file {home}/token --evidence {home}/e",
            "refused",
            "is the server running?",
        ),
        (
            "verify http://127.0.0.1:9 --token-file {home}/none --evidence {home}/e",
            "none can't be",
            "name the token file",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_next_step(home: Path, line: str, named: str, step: str) -> None:
    status, out, err = finish(start(shlex.split(line.format(home=home))))
    assert (status, out) == (1, "")
    [said] = err.splitlines()
    assert said.startswith("aip-hermes: ")
    cause, _, remedy = said.partition("; ")
    assert named in cause
    assert step in remedy


@pytest.mark.requirement("mistakes:one-sentence")
def test_a_file_of_sessions_that_is_not_there_is_named_with_the_next_step(tmp_path: Path) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log"):
        pass
    nope = tmp_path / "nope.jsonl"
    status, out, err = finish(start(["sessions", "import", str(nope), "--data", str(tmp_path / "data")]))
    assert (status, out) == (1, "")
    assert err == f"aip-hermes: {nope}: no such file or directory; compare the name with what is there\n"


@pytest.mark.requirement("mistakes:one-sentence")
def test_a_token_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    status, _, err = finish(start(["init", str(tmp_path)]))
    assert status == 0, err
    reviewer = tmp_path / "tokens" / "reviewer"
    reviewer.unlink()
    status, out, err = finish(start(["serve", "--config", str(tmp_path / "aip-hermes.toml"), "--port", "0"]))
    assert (status, out) == (1, "")
    [said] = err.splitlines()
    assert f"`tokens[1].file` can't be used: credential file {reviewer} can't be opened" in said
    assert said.endswith(f"; write a token into it, as `openssl rand -hex 32` makes one, then `chmod 600 {reviewer}`")
