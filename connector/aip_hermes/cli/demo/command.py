"""Runs the demo and says how it went."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from aip_hermes.cli.address import AddressRefused, checked_origin
from aip_hermes.cli.aipctl.terminal import safe_text
from aip_hermes.cli.demo.report import line_of, print_table
from aip_hermes.cli.demo.theatre import theatre
from aip_hermes.cli.demo.walk import Walk
from aip_hermes.secret import SecretFileError, read_secret_file

__all__ = ["run_demo"]

_WIDTH_OF_A_PIPE = 120


async def run_demo(*, endpoint_url: str | None, key_file: Path | None, keep: bool) -> int:
    """Walk the lifecycle; return the exit status: 0 only when every verification held."""
    started = time.monotonic()
    if endpoint_url is not None:
        endpoint_url = checked_origin("--endpoint", endpoint_url)
        _check_key(key_file)
    where = f"the Hermes at {endpoint_url}" if endpoint_url else "an embedded Hermes"
    click.echo(f"Starting an AIP server in front of {where} ...", err=True)
    async with theatre(endpoint_url=endpoint_url, key_file=key_file, keep=keep) as (stage, folder):
        if keep:
            click.echo(f"Kept: {folder}", err=True)
        walk = Walk(stage)
        whole = False
        try:
            steps = await walk.run(lambda step: click.echo(line_of(step)))
            whole = not steps[-1].failure
        finally:
            if endpoint_url and not whole and walk.left_sessions:
                click.echo(f"May be left at the endpoint: the sessions {walk.source} and {walk.child}.", err=True)
        print_table(steps, Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE))
        last = steps[-1]
        if not last.failure:
            held = sum(len(step.verified) for step in steps)
            click.echo(f"All {held} verifications held, in {time.monotonic() - started:.1f} s.")
            if endpoint_url:
                click.echo(f"Left at the endpoint: the closed session {walk.source}.")
            return 0
        _show_log(folder / "aip-server.log")
        click.echo(f"Step {last.number} ({last.title}) failed: {safe_text(last.failure)}", err=True)
        return 1


def _check_key(key_file: Path | None) -> None:
    try:
        read_secret_file(key_file or Path())
    except SecretFileError as error:
        raise AddressRefused(
            f"{error}; --key-file names a file of mode 0600 that holds the API_SERVER_KEY of that Hermes"
        ) from None


def _show_log(path: Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    click.echo("\n".join(["The server's last messages:", *lines]), err=True)
