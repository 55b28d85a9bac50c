"""Writes what an operator needs before the first `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from aip_hermes.cli.home import REQUESTER, REVIEWER, TENANT, Home, make_home, write_new
from aip_hermes.settings import render_template

__all__ = ["ready_home", "run_init"]

PORT: Final = 8080
HERMES_PORT: Final = 8642


def run_init(*, folder: Path, reviewer_folder: Path | None) -> None:
    """Make the files that are missing and say where they are. Existing ones stay as they are."""
    home = make_home(folder, reviewer_folder=reviewer_folder)
    made = _write_settings(home)
    word = "wrote" if made else "kept"
    click.echo(f"{word} {home.settings}", err=True)
    click.echo(f"requester's token: {home.requester_token}", err=True)
    click.echo(f"reviewer's token:  {home.reviewer_token}", err=True)
    click.echo(f"who may approve:   {home.authority}", err=True)
    click.echo(
        f"endpoint's key:    {home.hermes_key} (put your Hermes' API_SERVER_KEY there, or give Hermes this one)",
        err=True,
    )
    click.echo(f"next: set base_url in the settings, then run: aip-hermes serve --config {home.settings}", err=True)


def ready_home(folder: Path, *, port: int = PORT, hermes_port: int = HERMES_PORT) -> Home:
    """Make what is missing in `folder`, the settings file included.

    port, hermes_port: what a settings file made now says, so that whoever reads it finds both; for 0, the usual ones.
    """
    home = make_home(folder.absolute())
    _write_settings(home, port=port or PORT, hermes_port=hermes_port or HERMES_PORT)
    return home


def _write_settings(home: Home, *, port: int = PORT, hermes_port: int = HERMES_PORT) -> bool:
    """Write the settings file unless it exists; return whether it was written."""
    reviewer_file = (
        "tokens/reviewer" if home.reviewer_folder == home.folder / "tokens" else str(home.reviewer_token.absolute())
    )
    return write_new(
        home.settings,
        render_template(
            port=port,
            endpoint_url=f"http://127.0.0.1:{hermes_port}/",
            key_file="hermes/key",
            tenant_id=TENANT,
            requester=REQUESTER,
            reviewer=REVIEWER,
            reviewer_file=reviewer_file,
        ),
    )
