"""Both servers for one person at one machine: an embedded Hermes and the AIP server in front of it."""

from __future__ import annotations

import asyncio
import signal

import click

from aip_hermes.cli.children import Child, stop_together
from aip_hermes.cli.home import Home
from aip_hermes.cli.ready import announce
from aip_hermes.server.listening import listen
from aip_hermes.settings import Settings

__all__ = ["run_up"]


async def run_up(*, home: Home, port: int, hermes_port: int) -> int:
    """Start both, announce them, and wait for SIGTERM or SIGINT. Return the exit status.

    A child that ends by itself ends the other too: half a pair would only look alive.
    """
    _check_port(
        hermes_port, "--hermes-port", " If your own Hermes has it, run `aip-hermes serve` in front of that one."
    )
    _check_port(port, "--port", "")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    running: list[Child] = []
    try:
        starting = asyncio.create_task(_start(running, home, port=port, hermes_port=hermes_port))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
            return 0
        starting.result()
        _announce(running, home)
        ends = {asyncio.create_task(child.wait()): child for child in running}
        await asyncio.wait({stopping, *ends}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            return 0
        ended = next(child for task, child in ends.items() if task.done())
        click.echo(f"aip-hermes: {ended.name} ended by itself; stopping both", err=True)
        return 1
    finally:
        await stop_together(running)


def _check_port(port: int, option: str, hint: str) -> None:
    """Refuse a port that is in use before anything starts, in terms of the options of `up`. Raises CannotServe."""
    listen(
        "127.0.0.1", port, advice=f"stop what uses it, or choose another with {option} (0 picks a free one).{hint}"
    ).close()


async def _start(running: list[Child], home: Home, *, port: int, hermes_port: int) -> None:
    arguments = ["hermes", "--data", str(home.hermes), "--port", str(hermes_port)]
    hermes = await Child.start("the embedded Hermes", arguments)
    running.append(hermes)
    arguments = ["serve", "--config", str(home.settings), "--port", str(port)]
    arguments += ["--endpoint-url", str(hermes.ready["hermes_url"])]
    running.append(await Child.start("the AIP server", arguments))


def _announce(running: list[Child], home: Home) -> None:
    hermes, server = running
    endpoint = Settings.load(home.settings).endpoints[0]
    announce(
        {
            "aip_url": server.ready["aip_url"],
            "hermes_url": hermes.ready["hermes_url"],
            "endpoint_id": endpoint.id,
            "tenant_id": endpoint.tenant_id,
            "token_files": {"requester": str(home.requester_token), "reviewer": str(home.reviewer_token)},
            "hermes_key_file": str(home.hermes_key),
        }
    )
