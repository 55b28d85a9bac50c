"""The examples of the how-to, run one after the other as they stand, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/use-hermes-in-a-script.md"

RUNNER = """
import sys
for number, program in enumerate(sys.stdin.read().split("\\0")):
    print(f"== {number}")
    exec(compile(program, f"example {number}", "exec"), {"__name__": "__main__"})
"""


@pytest.mark.requirement("agent:guide")
def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER],
        input="\0".join(programs),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HERMES_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    talk, keep, resume, search, tool, stop, compress = (
        part.partition("\n")[2].strip() for part in done.stdout.split("== ")[1:]
    )
    assert "The parcel weighs 4 kg." in talk
    assert keep.endswith("True")
    assert resume.startswith("2 messages before;")
    assert "The session began with: “The parcel was sent on Monday.”" in resume
    assert '"success": true' in search
    assert '{"lamp": 12}' in tool
    assert stop.splitlines() == ["user Is there another way? None", "assistant Let me see.  interrupted"]
    assert compress.splitlines() == ["True True", "True"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conversations.db"]
