"""Runs the demo and says how it went."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from aip_hermes.cli.demo.report import line_of, print_table
from aip_hermes.cli.demo.theatre import theatre
from aip_hermes.cli.demo.walk import Walk

__all__ = ["run_demo"]

_WIDTH_OF_A_PIPE = 120


async def run_demo(*, endpoint_url: str | None, key_file: Path | None, keep: bool) -> int:
    """Walk the lifecycle; return the exit status: 0 only when every verification held."""
    started = time.monotonic()
    where = f"the Hermes at {endpoint_url}" if endpoint_url else "an embedded Hermes"
    click.echo(f"Starting an AIP server in front of {where} ...", err=True)
    async with theatre(endpoint_url=endpoint_url, key_file=key_file, keep=keep) as (stage, folder):
        walk = Walk(stage)
        steps = await walk.run(lambda step: click.echo(line_of(step)))
        width = None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE
        print_table(steps, Console(width=width))
        failed = next((step for step in steps if step.failure), None)
        if failed is None:
            held = sum(len(step.verified) for step in steps)
            click.echo(f"All {held} verifications held, in {time.monotonic() - started:.1f} s.")
            if endpoint_url:
                click.echo(f"Left at the endpoint: the closed session {walk.source}.")
        else:
            click.echo(f"Step {failed.number} ({failed.title}) failed: {failed.failure}", err=True)
            _show_log(folder / "aip-server.log")
    if keep:
        click.echo(f"Kept: {folder}", err=True)
    return 0 if failed is None else 1


def _show_log(path: Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    click.echo("\n".join(["The server's last messages:", *lines]), err=True)
