"""A process whose turn never ends: it prints `asked` once the model was asked, and waits to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.support.embedded_endpoint import GatedModel, endpoint


async def main(folder: Path) -> None:
    """Create session `s`, start a turn, report, wait."""
    model = GatedModel()
    async with endpoint(folder, model=model) as hermes:
        await hermes.create("s")
        turn = asyncio.create_task(hermes.chat("s", "survives"))
        await model.asked.wait()
        sys.stdout.write("asked\n")
        sys.stdout.flush()
        await turn


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
