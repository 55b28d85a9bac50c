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


SHAPES = """
import asyncio

from aip_hermes.embedded import AIAgent, ModelReply, SessionDB


class Parrot:
    name = "parrot"

    async def stream(self, request):
        told = " / ".join(str(message["content"]) for message in request.messages)
        yield told
        yield ModelReply(text=told)

    async def aclose(self):
        pass


async def talk():
    async with AIAgent(model=Parrot()) as agent:
        await agent.chat("a")
        return await agent.chat("b")


async def keep():
    db = SessionDB("./state.db")
    async with AIAgent(model=Parrot(), session_db=db, session_id="kept") as agent:
        return await agent.run_conversation("c")


async def go_on():
    db = SessionDB("./state.db")
    tip = await db.resolve_resume_session_id("kept")
    read, shown = await db.get_resume_conversations(tip)
    async with AIAgent(model=Parrot(), session_db=db, session_id=tip) as agent:
        result = await agent.run_conversation("d", conversation_history=read)
    return result, shown


async def search():
    async with AIAgent(
        model="offline", session_db=SessionDB("./state.db"), enabled_toolsets=["session_search"]
    ) as agent:
        return await agent.chat("call: session_search {\\"query\\": \\"c\\"}")


print(asyncio.run(talk()))
print(asyncio.run(keep())["persisted"])
result, shown = asyncio.run(go_on())
print(result["final_response"], len(shown))
print(asyncio.run(search()))
"""


@pytest.mark.requirement("agent:guide")
def test_stores_that_nobody_closes_hold_up_no_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHAPES], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    talk, kept, went_on, found = done.stdout.splitlines()
    assert (talk, kept, went_on) == ("a / a / b", "True", "c / c / d 2")
    assert '"success": true' in found
