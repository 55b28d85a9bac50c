"""The README's lines, run as they stand; only addresses, folders and the approval's id are filled in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import fenced, guides
from tests.support.processes import run_aipctl, running_up

README = Path(__file__).resolve().parents[2] / "README.md"


def by_hand() -> tuple[str, str]:
    """Return the lines up to the delete, and the reviewer's part."""
    section = README.read_text(encoding="utf-8").partition("## By hand")[2].partition("\n## ")[0]
    lines = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[1]
    before, _, after = lines.partition("\nreviewer approval records")
    return before, "reviewer approval records" + after


def shell(script: str, *, data: Path, url: str, head: str = "") -> str:
    """Run lines of the README in bash, which stops at the first that fails."""
    for written, meant in (
        (".venv/bin/aipctl", f"{sys.executable} -m aip_hermes.cli.aipctl"),
        ("./aip-data", str(data)),
        ("http://127.0.0.1:8080", url),
    ):
        script, head = script.replace(written, meant), head.replace(written, meant)
    done = subprocess.run(
        ["bash", "-e"],
        input=f"shopt -s expand_aliases\n{head}\n{script}",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("readme:by-hand")
def test_the_lines_by_hand_walk_the_lifecycle(tmp_path: Path) -> None:
    lifecycle, review = by_hand()
    head = "\n".join(line for line in lifecycle.splitlines() if line.startswith(("export", "alias")))
    data = tmp_path / "data"
    with running_up(data, log=tmp_path / "up.log") as (_, ready):
        printed = shell(lifecycle, data=data, url=ready["aip_url"])
        assert printed.count('"status": "completed"') == 6
        assert printed.count('"status": "pending_approval"') == 1
        token = ["--native-bearer-token-file", ready["token_files"]["reviewer"]]
        records = run_aipctl([*token, "approval", "records", ready["aip_url"]])
        approval_id = json.loads(records.stdout)["approval_list"]["approvals"][0]["request"]["id"]
        printed = shell(review.replace("APPROVAL_ID", approval_id), data=data, url=ready["aip_url"], head=head)
        assert '"deleted": true' in printed


@pytest.mark.requirement("readme:by-hand")
@pytest.mark.parametrize("page", ["README.md", "docs/reference/commands.md", *guides()])
def test_what_is_to_be_typed_can_be_pasted_into_any_shell(page: str) -> None:
    """A zsh that is typed into, macOS's own, takes `#` and an apostrophe for words, and `:s` for a change of `$C`."""
    for block in fenced(page, "sh"):
        assert re.findall(r"(?:^|\s)#.*", block.text) == []
        assert re.findall(r"\$\w+:", block.text) == []


def test_the_output_shown_is_what_the_demo_prints() -> None:
    """The steps of the README's table are those of the walk, in order."""
    from aip_hermes.cli.demo.walk import Stage, Walk

    shown = README.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    steps = Walk(Stage.__new__(Stage)).steps()
    places = [shown.find(f" {title} ") for _, title, _ in steps]
    assert -1 not in places
    assert places == sorted(places)
