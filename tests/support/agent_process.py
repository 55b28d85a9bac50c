"""A script of its own: one turn of AIAgent on a file, with a model at an address and a tool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from aip_hermes.embedded import AIAgent, SessionDB, ToolRegistry

__all__ = ["script"]

ROOT = Path(__file__).resolve().parents[2]


def script(file: Path, url: str, session_id: str = "s") -> subprocess.Popen[str]:
    """Start the script in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.agent_process", str(file), url, session_id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


async def main(file: Path, url: str, session_id: str) -> None:
    """Say `survives` and print the answer."""
    tools = ToolRegistry()

    @tools.tool(toolset="clock", description="Tells the time.")
    async def now() -> str:
        return "noon"

    async with (
        SessionDB(file) as db,
        AIAgent(model="m", base_url=url, session_db=db, session_id=session_id, tools=tools) as agent,
    ):
        sys.stdout.write(await agent.chat("survives") + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
