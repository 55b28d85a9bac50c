"""`aip-hermes verify` as the how-to page says it, between real processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import AIP_HERMES, finish, run_aipctl, running_up, start

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "verify-a-deployment.md"


def commands() -> str:
    return "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.requirement("checklist:how-to", "checklist:passes", "checklist:check", "checklist:cleans-up")
def test_the_commands_of_the_page_verify_a_deployment_and_check_its_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (_, ready):
        values = {
            "URL": ready["aip_url"],
            "TOKENS": str(Path(ready["token_files"]["requester"]).parent),
            "EVIDENCE": str(evidence),
        }
        done = subprocess.run(
            ["bash", "-e"],
            input=f'aip-hermes() {{ {shlex.join(AIP_HERMES)} "$@"; }}\n{commands()}',
            capture_output=True,
            text=True,
            timeout=240,
            env={**os.environ, **values},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    path, _, checked = done.stdout.partition("\n")
    assert (
        sorted(file.name for file in evidence.iterdir()) == [Path(path).with_suffix(".md").name, Path(path).name][::-1]
    )
    assert json.loads(checked) | {"sha256": "", "run": ""} == {
        "file": path,
        "valid": True,
        "problems": [],
        "run": "",
        "verdict": "pass",
        "sha256": "",
        "markdown": "same",
    }
    lines = done.stderr.splitlines()
    assert [line[:7] for line in lines] == [f"ok   {number:>2}" for number in range(1, 15)]
    assert path not in (tmp_path / "up.log").read_text(encoding="utf-8")


@pytest.mark.requirement("checklist:fails")
def test_where_nobody_answers_it_says_so_and_writes_no_evidence(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-enough-characters", encoding="utf-8")
    token.chmod(0o600)
    evidence = tmp_path / "evidence"
    arguments = ["verify", "http://127.0.0.1:9", "--token-file", str(token), "--evidence", str(evidence)]
    status, out, err = finish(start(arguments))
    assert (status, out) == (1, "")
    assert err.startswith("aip-hermes: ")
    assert "Traceback" not in err
    assert list(evidence.iterdir()) == []


@pytest.mark.requirement("checklist:cleans-up")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_the_command_is_left_without_sessions_and_identities(tmp_path: Path, number: signal.Signals) -> None:
    evidence = tmp_path / "evidence"
    with running_up(tmp_path / "data", log=tmp_path / "up.log") as (_, ready):
        tokens = ready["token_files"]
        process = start(
            ["verify", ready["aip_url"], "--token-file", tokens["requester"],
             "--reviewer-token-file", tokens["reviewer"], "--evidence", str(evidence)]
        )  # fmt: skip
        assert process.stderr is not None
        seen = [process.stderr.readline() for _ in range(9)]
        process.send_signal(number)
        status, out, err = finish(process)
        assert (status, out) == (130, ""), err
        assert seen[8].startswith("ok    9")
        assert "left at the endpoint" not in err
        given = ["--native-bearer-token-file", tokens["requester"], "action", "call", ready["aip_url"]]
        listed = run_aipctl([*given, "cap:hermes_agent:primary:sessions_list", "--input", '{"include_children": true}'])
        assert json.loads(listed.stdout)["body"]["action_result"]["output"]["data"] == []
    assert list(evidence.iterdir()) == []
