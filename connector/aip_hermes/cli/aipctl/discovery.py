"""`aipctl manifest` and `aipctl capability`: what a server offers."""

from __future__ import annotations

import click

from aip_hermes.cli.aipctl.arguments import URL
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import run
from aip_hermes.cli.aipctl.terminal import print_json

__all__ = ["capability", "manifest"]


@click.group()
@global_options
def manifest() -> None:
    """The server's own description."""


@manifest.command("fetch")
@click.argument("url", metavar="URL", type=URL)
@global_options
def manifest_fetch(url: str) -> None:
    """Print the manifest; with a token, that of its tenant."""
    print_json(run(url, lambda connection: connection.manifest()))


@click.group()
@global_options
def capability() -> None:
    """The capabilities of the token's tenant."""


@capability.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--capability-id", metavar="ID", help="This one only.")
@click.option("--text", metavar="T", help="Part of id, name or description, in any letter case.")
@click.option("--profile", metavar="P", help="With a binding of this profile.")
@click.option("--cursor", metavar="C", help="`next_cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Entries of a page, at most 200.")
@global_options
def capability_list(
    url: str, capability_id: str | None, text: str | None, profile: str | None, cursor: str | None, limit: int | None
) -> None:
    """Print one page of the catalogue."""
    print_json(
        run(
            url,
            lambda connection: connection.capabilities(
                capability_id=capability_id, text=text, profile=profile, cursor=cursor, limit=limit
            ),
        )
    )
