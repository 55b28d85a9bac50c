"""AIP servers that die where a test wants it: real processes, forked from one that has imported everything already.

`python -m tests.support.crash_server` reads orders from stdin, one JSON line each, and answers on stdout:

    {"config": "/…/aip-hermes.toml", "log": "/…/server.log", "die_at": "after_send", "passes": 0}
    {"pid": 4711}  {"aip_url": "http://127.0.0.1:…"}  {"ended": 4711, "signal": 9}

Without `die_at` the server is the `aip-hermes serve` command itself. With it the same composition runs with faults that
SIGKILL the process when it reaches that point, after `passes` times. With `live_s` it is killed after so many seconds,
whether it is ready by then or not. With `arguments` it is that `aip-hermes` command instead, and `config` only says
where its log lies. The switch is here and nowhere in what users run.
One server at a time; it stops when this process does, and this process when its stdin closes.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from aip_hermes import wire
from aip_hermes.app import serve
from aip_hermes.cli import aip_hermes
from aip_hermes.cli.ready import announce, stop_with_stdin
from aip_hermes.contract import load_operations
from aip_hermes.log import configure
from aip_hermes.settings import Settings

__all__ = ["KillAt"]


class KillAt:
    """Faults that end this process at a point, as a power cut does. passes: how often it is passed before."""

    def __init__(self, point: str, *, passes: int = 0) -> None:
        self._point = point
        self._left = passes

    async def reach(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


async def _serve_faulty(config: Path, faults: KillAt) -> None:
    configure()
    stop = asyncio.Event()
    await stop_with_stdin(stop)
    settings = Settings.load(config)
    await serve(settings, stop=stop, on_ready=lambda url: announce({"aip_url": url}), faults=faults)


def _become_server(order: Mapping[str, Any], stdin: int) -> NoReturn:
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(stdin, 0)
    status = 1
    try:
        if order.get("die_at"):
            asyncio.run(_serve_faulty(Path(order["config"]), KillAt(order["die_at"], passes=order["passes"])))
        else:
            arguments = order.get("arguments", ["serve", "--config", order["config"]])
            aip_hermes.main([*arguments, "--until-stdin-closes"], standalone_mode=False)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _run(order: Mapping[str, Any], *, orders: int) -> bool:
    """Run one server to its end; False when the test's process ended first."""
    life_in, life_out = os.pipe()  # closed at its end by the kernel, however the server ends
    stdin_in, stdin_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(life_in)
        os.close(stdin_out)
        _become_server(order, stdin_in)
    os.close(life_out)
    os.close(stdin_in)
    announce({"pid": pid})
    ready, _, _ = select.select([life_in, orders], [], [], order.get("live_s"))
    alone = orders in ready and life_in not in ready
    if life_in not in ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(life_in)
    os.close(stdin_out)
    if not alone:
        announce({"ended": pid, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None})
    return not alone


def _main() -> None:
    for command in ("serve", "hermes"):
        import_module(f"aip_hermes.cli.{command}")  # as the command does when it runs; a fork finds it
    wire.build_models()
    load_operations()
    orders = sys.stdin.fileno()
    announce({"forks": True})
    for line in sys.stdin:
        if not _run(json.loads(line), orders=orders):
            return


if __name__ == "__main__":
    _main()
