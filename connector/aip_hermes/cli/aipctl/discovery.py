"""`aipctl manifest` and `aipctl capability`: what a server offers, and whether its description is right."""

from __future__ import annotations

import click

from aip_hermes.cli.aipctl.arguments import DOCUMENT, URL, JsonSource
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import FAILED, CommandFailed, run
from aip_hermes.cli.aipctl.terminal import print_json

__all__ = ["capability", "manifest"]


@click.group()
@global_options
def manifest() -> None:
    """A server's own description: read one, check one."""


@manifest.command("fetch")
@click.argument("url", metavar="URL", type=URL)
@global_options
def manifest_fetch(url: str) -> None:
    """Print the manifest; with a token, that of its tenant."""
    print_json(run(url, lambda connection: connection.manifest()))


@manifest.command("validate", epilog="Exit codes besides the usual ones: 1 for a manifest that breaks a rule.")
@click.argument("source", metavar="PATH", type=DOCUMENT)
@global_options
def manifest_validate(source: JsonSource) -> None:
    """Check a manifest in a file, or - for stdin, and print `manifest valid`. Nobody is asked.

    It is held against the published schema, which knows every member, and against the protocol's own rules.
    """
    from pydantic import ValidationError

    from aip_hermes import wire
    from aip_hermes.wire.schema import schema_violations

    given = source.parsed()
    problems = schema_violations("manifest", given)
    if not problems:
        try:
            wire.Manifest.model_validate(given)
        except ValidationError as exc:
            problems = wire.violations(exc)
    if problems:
        lines = [f"  {problem}" for problem in problems]
        raise CommandFailed(f"{source.origin} is no valid manifest", *lines, exit_code=FAILED)
    click.echo("manifest valid")


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
