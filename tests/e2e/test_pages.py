"""Every fenced block of every tutorial and how-to is run by a test, or parsed, or named with a reason.

The table says which test runs the blocks of a page and language, all of them and as they stand; a page, a language or a
block that is not in it fails here.
"""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from aip_hermes.settings import Settings
from tests.support.pages import ROOT, fenced, guides
from tests.support.processes import AIP_HERMES, running_up, stop

OPERATE = "docs/how-to/operate.md"


@dataclass(frozen=True)
class NotRun:
    """Blocks that no test can run."""

    reason: str


TUTORIAL = "docs/tutorial/a-session-you-can-trust.md"
HOW_TO = "docs/how-to/"
SHARED = HOW_TO + "several-servers.md"


@dataclass(frozen=True)
class RunBy:
    """The test that runs all blocks of some languages of a page."""

    module: str
    name: str
    languages: tuple[str, ...] = ("sh",)


RUN_BY: Mapping[str, RunBy] = {
    TUTORIAL: RunBy("tests/e2e/test_session_tutorial.py", "test_the_tutorial_does_what_it_says", ("sh", "python")),
    HOW_TO + "after-an-uncertain-outcome.md": RunBy(
        "tests/contract/test_reconcile_command.py", "test_every_command_of_the_page_runs"
    ),
    HOW_TO + "look-after-an-embedded-hermes.md": RunBy(
        "tests/contract/test_sessions_command.py", "test_the_commands_of_the_page_run_as_they_stand"
    ),
    SHARED: RunBy("tests/e2e/test_several_servers_page.py", "test_the_commands_of_the_page_run_as_they_stand"),
    HOW_TO + "use-from-python.md": RunBy(
        "tests/e2e/test_use_from_python.py", "test_the_examples_run_as_they_stand", ("python",)
    ),
    HOW_TO + "use-hermes-in-a-script.md": RunBy(
        "tests/e2e/test_use_hermes_in_a_script.py", "test_the_examples_run_as_they_stand", ("python",)
    ),
    HOW_TO + "verify-a-deployment.md": RunBy(
        "tests/e2e/test_verify.py", "test_the_commands_of_the_page_verify_a_deployment_and_check_its_evidence"
    ),
    OPERATE: RunBy("tests/e2e/test_pages.py", "test_the_commands_for_operators_run_as_they_stand"),
}

NOT_RUN: Mapping[tuple[str, int], NotRun] = {
    (OPERATE, 4): NotRun("it installs OpenTelemetry's own tools, which this project does not bring"),
    (SHARED, 0): NotRun("it installs a driver and makes a database, which the tests have done"),
    (TUTORIAL, 3): NotRun("it shows what is printed; the test of the page looks for it"),
}

PARSED: Mapping[str, Callable[[str], object]] = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
"""What is no command must at least be what it says."""


@pytest.mark.requirement("docs:blocks-run")
@pytest.mark.parametrize("page", guides())
def test_each_block_is_run_parsed_or_named(page: str) -> None:
    for block in fenced(page):
        if (page, block.number) in NOT_RUN:
            assert block.language in ("sh", "text")
        elif block.language in PARSED:
            assert PARSED[block.language](block.text)
        else:
            run_by = RUN_BY.get(page)
            assert run_by is not None, f"no test runs the blocks of {page}"
            assert block.language in run_by.languages, f"no test runs block {block.number}: {block.text[:60]!r}"


@pytest.mark.requirement("docs:blocks-run")
@pytest.mark.parametrize("page", [page for page in guides() if page in RUN_BY])
def test_the_test_that_is_named_for_a_page_exists_and_reads_it(page: str) -> None:
    run_by = RUN_BY[page]
    assert [language for language in run_by.languages if not fenced(page, language)] == []
    text = (ROOT / run_by.module).read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text))
    assert run_by.name in {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert Path(page).name in text


@pytest.mark.requirement("docs:blocks-run")
def test_what_is_not_run_is_there() -> None:
    for (page, number), named in NOT_RUN.items():
        assert number in {block.number for block in fenced(page)}
        assert named.reason


@pytest.mark.requirement("docs:blocks-run")
def test_the_commands_for_operators_run_as_they_stand(tmp_path: Path) -> None:
    lines = [
        line.replace("/var/backups", str(tmp_path / "backups"))
        for block in fenced(OPERATE, "sh")
        if (OPERATE, block.number) not in NOT_RUN
        for line in block.text.splitlines()
    ]
    (tmp_path / "backups").mkdir(mode=0o700)
    data = tmp_path / "data"
    with running_up(data, log=tmp_path / "up.log") as (process, ready):
        settings = data / "aip-hermes.toml"
        configured = str(Settings.load(settings).endpoints[0].base_url)
        text = settings.read_text(encoding="utf-8")
        assert configured in text
        settings.write_text(text.replace(configured, ready["hermes_url"]), encoding="utf-8")
        said = shell([line for line in lines if " restore " not in line], folder=data)
        assert [word in said for word in ('"ok": true', "backup")] == [True, True]
        stop(process)
    shell([line for line in lines if " restore " in line], folder=data)
    assert len(lines) >= 6
    assert list(data.rglob("*.before-restore-*"))


def shell(lines: list[str], *, folder: Path) -> str:
    """Run lines in bash, which stops at the first that fails; return what they print."""
    assert lines
    done = subprocess.run(
        ["bash", "-e"],
        input=f'aip-hermes() {{ {shlex.join(AIP_HERMES)} "$@"; }}\n' + "\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
