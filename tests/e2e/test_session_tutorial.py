"""The tutorial, done as it stands: program saved, commands run; only addresses, folders and the id are filled in."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import run_aipctl, running_up

PAGE = (Path(__file__).resolve().parents[2] / "docs/tutorial/a-session-you-can-trust.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def filled(text: str, *, data: Path, url: str) -> str:
    """Return lines of the page for this machine."""
    for written, meant in (("./aip-data", str(data)), ("http://127.0.0.1:8080", url)):
        text = text.replace(written, meant)
    return text


def shell(script: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    python = shlex.quote(sys.executable)
    commands = f'aipctl() {{ {python} -m aip_hermes.cli.aipctl "$@"; }}\n{script}'
    for_python = re.sub(r"(^|KILL 2 )python ", rf"\1{python} ", commands, flags=re.MULTILINE)
    return subprocess.run(
        ["bash", "-e"], input=for_python, capture_output=True, text=True, timeout=240, check=False, cwd=folder
    )


@pytest.mark.requirement("docs:session-tutorial")
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    [program] = blocks("python")
    up, killed, look, decide = blocks("sh")
    assert up.startswith("aip-hermes up --data ./aip-data")
    data = tmp_path / "data"
    with running_up(data, log=tmp_path / "up.log") as (_, ready):
        url = ready["aip_url"]
        (tmp_path / "case.py").write_text(filled(program, data=data, url=url), encoding="utf-8")
        done = shell(filled(killed, data=data, url=url), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "lifecycle.decision_pending: nobody has decided appr_" in done.stderr
        assert "reply: " in done.stdout

        shown = shell(filled(look, data=data, url=url), folder=tmp_path)
        assert shown.returncode == 0, shown.stderr
        tree, end = json.JSONDecoder().raw_decode(shown.stdout)
        transcript = json.loads(shown.stdout[end:])
        [child] = tree["root"]["children"]
        assert (tree["root"]["session"]["message_count"], child["kind"], child["children"]) == (2, "fork", [])
        said = [row["content"] for row in transcript["messages"]["data"] if row["role"] == "user"]
        assert said == ["What is verified?", "Try it another way."]

        token = ["--native-bearer-token-file", ready["token_files"]["reviewer"]]
        records = run_aipctl([*token, "approval", "records", url])
        approval_id = json.loads(records.stdout)["approval_list"]["approvals"][0]["request"]["id"]
        ended = shell(filled(decide, data=data, url=url).replace("APPROVAL_ID", approval_id), folder=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.count("deleted: case-2030-b") == 2


@pytest.mark.requirement("docs:session-tutorial")
def test_the_tutorial_names_failures_and_steps_that_exist() -> None:
    from aip_hermes import SessionLifecycle
    from aip_hermes.client import lifecycle

    failures = PAGE.partition("| failure |")[2].partition("\n\n")[0]
    named = re.findall(r"`([A-Z]\w+)`", failures)
    assert len(named) >= 9
    assert [name for name in named if not hasattr(lifecycle, name)] == []
    steps = re.findall(r"^\| `(\w+)` \|", PAGE.partition("| step |")[2].partition("\n\n")[0], re.MULTILINE)
    assert len(steps) == 7
    assert [step for step in steps if not hasattr(SessionLifecycle, step)] == []
