"""The AIP server as a process of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from aip_hermes.app import serve
from aip_hermes.cli.ready import announce, stop_with_stdin
from aip_hermes.log import configure
from aip_hermes.server.listening import stop_signals
from aip_hermes.settings import Settings

__all__ = ["run_serve"]


async def run_serve(*, config: Path, port: int | None, endpoint_url: str | None, until_stdin_closes: bool) -> None:
    """Serve the endpoints of a settings file until told to stop. Raises: SettingsError, CannotServe."""
    configure()
    settings = _with(Settings.load(config), port=port, endpoint_url=endpoint_url)
    chosen = settings.log
    configure(level=chosen.level, console=None if chosen.format == "auto" else chosen.format == "text")
    advice = "stop what uses it, or choose another with --port (0 picks a free one)"
    if port is None:
        advice += f", or under [server] in {settings.path}"
    stop = asyncio.Event()
    with stop_signals(stop):
        if until_stdin_closes:
            await stop_with_stdin(stop)
        await serve(settings, stop=stop, on_ready=lambda url: announce({"aip_url": url}), advice=advice)


def _with(settings: Settings, *, port: int | None, endpoint_url: str | None) -> Settings:
    if port is not None:
        settings = replace(settings, server=replace(settings.server, port=port))
    if endpoint_url is not None:
        if len(settings.endpoints) != 1:
            raise click.UsageError(f"{settings.path} names {len(settings.endpoints)} endpoints; write base_url there")
        settings = replace(settings, endpoints=(replace(settings.endpoints[0], base_url=endpoint_url),))
    return settings
