"""An endpoint in a process of its own, on a store that others serve too: `python -m tests.support.endpoint_process
STORE`. It prints `{"url": …}` when it answers, and ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from aip_hermes.cli.ready import announce
from aip_hermes.embedded import OfflineModel, SessionDB, build_app
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import KEY

__all__ = ["endpoint_process"]

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def endpoint_process(store: str) -> Iterator[subprocess.Popen[str]]:
    """Run it; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.endpoint_process", store],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def main(store: str) -> None:
    """Serve until stdin ends."""
    async with SessionDB(store) as db:
        await db.get_session("")  # a store that can't be used stops the start
        app = build_app(db=db, model=OfflineModel(), key=Secret(KEY))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            # The socket listens already: who asks now is answered when the application is up.
            announce({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
