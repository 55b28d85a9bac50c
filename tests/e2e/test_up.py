"""`aip-hermes up`: two servers for one person."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from aip_hermes.cli.home import HomeRefused, write_new
from aip_hermes.cli.init import ready_home
from aip_hermes.settings import Settings
from tests.support.processes import alive, children_of, finish, run_aipctl, running_up, start, stop


@pytest.mark.requirement("up:ready-line", "up:stops", "up:secrets")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_announces_itself_once_keeps_secrets_and_stops(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "data"
    secrets: dict[Path, str] = {}
    for _ in range(2):
        before = time.monotonic()
        with running_up(folder, log=tmp_path / "up.log") as (process, ready):
            assert set(ready) == {"aip_url", "hermes_url", "endpoint_id", "tenant_id", "token_files", "hermes_key_file"}
            assert ready["endpoint_id"] == "primary"
            files = [*ready["token_files"].values(), ready["hermes_key_file"]]
            for file in map(Path, files):
                assert file.stat().st_mode & 0o777 == 0o600
                assert file.parent.stat().st_mode & 0o777 == 0o700
                assert secrets.setdefault(file, file.read_text(encoding="utf-8")) == file.read_text(encoding="utf-8")
            assert folder.stat().st_mode & 0o777 == 0o700
            children = children_of(process.pid)
            started = time.monotonic()
            process.send_signal(number)
            assert finish(process)[:2] == (0, "")
            # A machine that is too busy for five seconds takes longer than that to start, too.
            assert time.monotonic() - started < max(5, started - before)
            assert not any(alive(child) for child in children)


@pytest.mark.requirement("up:no-orphans")
def test_a_killed_up_takes_its_children_along(tmp_path: Path) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (process, _):
        children = children_of(process.pid)
        assert len(children) == 2
        process.kill()
        process.wait(timeout=30)
        deadline = time.monotonic() + 30
        while any(alive(child) for child in children):
            assert time.monotonic() < deadline
            os.sched_yield()


@pytest.mark.requirement("up:no-orphans")
@pytest.mark.parametrize("which", [0, 1])
def test_a_dead_child_ends_up(tmp_path: Path, which: int) -> None:
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (process, _):
        children = sorted(children_of(process.pid))
        os.kill(children[which], signal.SIGKILL)
        assert finish(process, seconds=30)[0] == 1
        assert not any(alive(child) for child in children)
    assert "ended by itself" in (tmp_path / "up.log").read_text(encoding="utf-8")


@pytest.mark.requirement("up:one-owner", "mistakes:one-sentence")
def test_a_second_up_on_the_folder_or_the_port_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running_up(folder, log=tmp_path / "up.log") as (_, ready):
        status, out, err = finish(start(["up", "--data", str(folder), "--port", "0", "--hermes-port", "0"]))
        assert (status, out) == (1, "")
        assert "is in use by process" in err
        port = ready["aip_url"].rpartition(":")[2].strip("/")
        other = tmp_path / "other"
        status, out, err = finish(start(["up", "--data", str(other), "--port", port, "--hermes-port", "0"]))
        assert (status, out) == (1, "")
        assert port in err
        assert "Traceback" not in err
        health = run_aipctl(["manifest", "fetch", ready["aip_url"]])
        assert health.returncode == 0, health.stderr


@pytest.mark.requirement("up:one-owner", "mistakes:one-sentence")
@pytest.mark.parametrize(("option", "other"), [("--port", "--hermes-port"), ("--hermes-port", "--port")])
def test_a_used_port_is_answered_with_the_option_that_chooses_another(tmp_path: Path, option: str, other: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        status, out, err = finish(start(["up", "--data", str(tmp_path / "data"), option, port, other, "0"]))
    assert (status, out) == (1, "")
    assert f"port {port}: address already in use" in err
    assert f"choose another with {option} (" in err
    assert len(err.splitlines()) == 1


@pytest.mark.requirement("app:serve:refusals", "mistakes:one-sentence")
@pytest.mark.parametrize("by_option", [True, False])
def test_serve_on_a_used_port_names_its_option_and_the_file_where_that_would_help(
    tmp_path: Path, by_option: bool
) -> None:
    status, _, err = finish(start(["init", str(tmp_path / "aip")]))
    assert status == 0, err
    settings = tmp_path / "aip" / "aip-hermes.toml"
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        text = settings.read_text(encoding="utf-8")
        settings.write_text(re.sub(r"(?m)^port = \d+", f"port = {port}", text), encoding="utf-8")
        option = ["--port", port] if by_option else []
        status, out, err = finish(start(["serve", "--config", str(settings), *option]))
    assert (status, out) == (1, "")
    said = next(line for line in err.splitlines() if f"port {port}: address already in use" in line)
    assert "choose another with --port (" in said
    assert (str(settings) in said) is not by_option


@pytest.mark.requirement("up:stops", "up:no-orphans")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_stopped_while_it_starts_takes_its_child_along(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "up.log"
    process = start(["up", "--data", str(tmp_path / "data"), "--port", "0", "--hermes-port", "0"], log=log)
    deadline = time.monotonic() + 30
    while not (children := children_of(process.pid)):
        assert time.monotonic() < deadline
        os.sched_yield()
    assert stop(process, number) == 0
    assert not any(alive(child) for child in children)
    assert "Traceback" not in log.read_text(encoding="utf-8")


@pytest.mark.requirement("mistakes:one-sentence")
def test_a_child_that_gives_up_keeps_its_exit_status(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running_up(folder, log=tmp_path / "up.log"):
        status, out, err = finish(start(["up", "--data", str(folder), "--port", "0", "--hermes-port", "0"]))
    assert (status, out) == (1, "")
    assert "(exit status 1)" in err
    assert "Unknown child process" not in err


@pytest.mark.requirement("init:files")
def test_init_writes_once_and_serve_takes_what_it_wrote(tmp_path: Path) -> None:
    folder, away = tmp_path / "aip", tmp_path / "reviewers"
    for _ in range(2):
        status, out, err = finish(start(["init", str(folder), "--reviewer-dir", str(away)]))
        assert (status, out) == (0, ""), err
        settings = folder / "aip-hermes.toml"
        settings.write_text(settings.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert settings.read_text(encoding="utf-8").count("# mine") == 2
    assert (folder / "tokens" / "requester").stat().st_mode & 0o777 == 0o600
    assert (away / "reviewer").stat().st_mode & 0o777 == 0o600
    assert not (folder / "tokens" / "reviewer").exists()
    server = start(["serve", "--config", str(settings), "--port", "0"], log=tmp_path / "serve.log")
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["aip_url"]
        reviewer = ["--native-bearer-token-file", str(away / "reviewer")]
        answer = run_aipctl([*reviewer, "approval", "records", url])
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout)["approval_list"]["approvals"] == []
    finally:
        assert stop(server) == 0


@pytest.mark.requirement("up:secrets:not-committed")
def test_a_folder_that_init_made_is_no_news_to_git_and_one_that_existed_is_left_alone(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    for arguments in (["init", str(tmp_path / "aip")], ["init", str(mine), "--reviewer-dir", str(tmp_path / "away")]):
        status, out, err = finish(start(arguments))
        assert (status, out) == (0, ""), err
    command = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    news = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(news) == ["?? mine/aip-hermes.toml", "?? mine/approval-authority.json"]


@pytest.mark.requirement("init:files")
def test_a_file_that_could_not_be_written_leaves_no_draft(tmp_path: Path) -> None:
    with pytest.raises(HomeRefused):
        write_new(tmp_path / ("x" * 255), "text")
    with pytest.raises(UnicodeEncodeError):
        write_new(tmp_path / "fine", "\ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("mistakes:one-sentence")
@pytest.mark.parametrize("command", [["up", "--data"], ["hermes", "--data"], ["init"]])
def test_a_folder_that_is_a_file_is_one_sentence(tmp_path: Path, command: list[str]) -> None:
    blocked = tmp_path / "blocked"
    blocked.touch()
    status, out, err = finish(start([*command, str(blocked / "inside")]))
    assert status != 0
    assert out == ""
    assert "Traceback" not in err
    assert str(blocked) in err


@pytest.mark.requirement("mistakes:one-sentence")
def test_an_unknown_quirk_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    status, out, err = finish(start(["hermes", "--data", str(tmp_path / "h"), "--port", "0", "--quirk", "nope"]))
    assert (status, out) == (1, "")
    assert "fork-not-atomic" in err
    assert "Traceback" not in err


@pytest.mark.requirement("mistakes:one-sentence")
@pytest.mark.parametrize("url", ["http://127.0.0.1:abc/v1", "http://[::1/v1", "ftp://127.0.0.1/v1", "http://u:p@h/v1"])
def test_a_model_address_that_is_none_is_one_sentence(tmp_path: Path, url: str) -> None:
    arguments = ["hermes", "--data", str(tmp_path / "h"), "--port", "0", "--model", "m", "--model-url", url]
    status, out, err = finish(start(arguments))
    assert (status, out) == (1, "")
    assert "--model-url" in err
    assert "Traceback" not in err


@pytest.mark.requirement("mistakes:one-sentence")
def test_a_key_that_can_be_guessed_is_refused_in_a_sentence(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("short", encoding="utf-8")
    key.chmod(0o600)
    status, out, err = finish(start(["hermes", "--data", str(tmp_path), "--port", "0"]))
    assert (status, out) == (1, "")
    assert str(key) in err
    assert "short" not in err.replace(str(key), "")
    assert "Traceback" not in err


@pytest.mark.requirement("up:says-its-ports")
def test_a_new_settings_file_has_the_ports_that_were_given_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    for data, given in (("new", ("18933", "18942")), ("new", ("18944", "18955")), ("free", ("0", "0"))):
        ready_home(tmp_path / data, port=int(given[0]), hermes_port=int(given[1]))
    new, free = (Settings.load(tmp_path / data / "aip-hermes.toml") for data in ("new", "free"))
    assert (new.server.port, str(new.endpoints[0].base_url)) == (18933, "http://127.0.0.1:18942/")
    assert (free.server.port, str(free.endpoints[0].base_url)) == (8080, "http://127.0.0.1:8642/")
