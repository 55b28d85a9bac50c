"""The examples of the how-to, run one after the other as they stand; only folder and addresses are filled in."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.processes import running_up

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/use-from-python.md"


def example() -> str:
    """Return the blocks of the page as one program."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    body = textwrap.indent("\n".join(blocks), "    ")
    return f"import asyncio\n\n\nasync def main() -> None:\n{body}\n\nasyncio.run(main())\n"


@pytest.mark.requirement("docs:python")
def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_up(data, log=tmp_path / "up.log") as (_, ready):
        program = example()
        for written, meant in (
            ("./aip-data", str(data)),
            ("http://127.0.0.1:8080", ready["aip_url"]),
            ("http://127.0.0.1:8642", ready["hermes_url"].rstrip("/")),
        ):
            assert written in program
            program = program.replace(written, meant)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1:3] == ["completed support-case-example-2030", lines[2]]
    for said in (
        "connector_failed session_not_found",
        "session_not_found False",
        "['user', 'assistant', 'user', 'assistant']",
        "2 False",
    ):
        assert said in lines
    assert any(line.startswith("pending appr_") for line in lines)
    assert any("'deleted': True" in line for line in lines)
