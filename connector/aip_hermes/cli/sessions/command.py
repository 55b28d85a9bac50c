"""`aip-hermes sessions`: its options. Bodies import what they run, so that `--help` stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from aip_hermes.cli.ending import cancelled_by_signals, guarded, run

__all__ = ["sessions"]

_F = TypeVar("_F", bound=Callable[..., Any])

_data = click.option(
    "--data",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("hermes-data"),
    show_default=True,
    help="Of `aip-hermes hermes` or of `aip-hermes up`.",
)
_PAGE = click.IntRange(1, 10_000)
_FROM = click.IntRange(0, 10**12)


@click.group()
def sessions() -> None:
    """Look after the sessions of an embedded Hermes, whether it runs or not.

    list, show, search, export and doctor change no byte. import and prune write beside a running server, which takes
    turns with them: it keeps no session in memory between two turns. doctor --repair needs the server stopped.
    """


@sessions.command("list")
@_data
@click.option("--limit", type=_PAGE, default=50, show_default=True)
@click.option("--offset", type=_FROM, default=0)
@click.option("--source", help="Of this source only.")
@click.option("--all", "everything", is_flag=True, help="Every row: subagents, archived, hidden and compressed ones.")
def list_sessions(folder: Path, limit: int, offset: int, source: str | None, everything: bool) -> None:
    """List conversations, the newest activity first.

    On a terminal a table, otherwise one JSON object per line.
    """
    from aip_hermes.cli.sessions.showing import run_list

    guarded(lambda: run_list(folder=folder, limit=limit, offset=offset, source=source, everything=everything))


@sessions.command()
@_data
@click.argument("session_id", metavar="SESSION")
@click.option("--all", "everything", is_flag=True, help="Also messages that were compacted away or taken back.")
def show(folder: Path, session_id: str, everything: bool) -> None:
    """Show the row and the messages of a session.

    SESSION is an id, or the beginning of one that no other session has. On a terminal tables, otherwise one JSON
    document: {"session", "messages", "usage"}.
    """
    from aip_hermes.cli.sessions.showing import run_show

    guarded(lambda: run_show(folder=folder, session_id=session_id, everything=everything))


@sessions.command()
@_data
@click.argument("query")
@click.option("--limit", type=_PAGE, default=20, show_default=True)
@click.option("--offset", type=_FROM, default=0)
@click.option("--source", help="In sessions of this source only.")
@click.option("--sort", type=click.Choice(["newest", "oldest"]), help="Instead of the best fit first.")
def search(
    folder: Path, query: str, limit: int, offset: int, source: str | None, sort: Literal["newest", "oldest"] | None
) -> None:
    """Find messages by their words.

    All words must be there; OR, NOT, "a phrase" and begin* work. On a terminal a table, otherwise one JSON object per
    line.
    """
    from aip_hermes.cli.sessions.showing import run_search

    guarded(lambda: run_search(folder=folder, query=query, limit=limit, offset=offset, source=source, sort=sort))


@sessions.command()
@_data
@click.argument("ids", metavar="[SESSION]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every session.")
@click.option("--source", help="With --all: of this source only.")
@click.option("--lineage", "chains", is_flag=True, help="Also the rows that compressions cut off a SESSION.")
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(allow_dash=True, path_type=Path), metavar="FILE",
    help="Or - for stdout.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace FILE where it exists.")
def export(
    folder: Path, ids: tuple[str, ...], everything: bool, source: str | None, chains: bool, target: Path, force: bool
) -> None:
    """Write sessions with their live messages to a file.

    One JSON object per line, as of one moment; the file appears whole or not at all, readable by you alone. It holds
    transcripts: keep it as safe. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.sessions.carrying import run_export

    if everything == bool(ids):
        raise click.UsageError("name the sessions, or give --all")
    if source is not None and not everything:
        raise click.UsageError("--source goes with --all")
    guarded(lambda: run_export(folder=folder, ids=ids, source=source, chains=chains, target=target, force=force))


@sessions.command("import")
@_data
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def import_file(folder: Path, file: Path) -> None:
    """Add the sessions of a file that `export` wrote.

    The whole file is checked first. A session whose id is there is skipped, never merged, so an import that was stopped
    can be run again. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.sessions.carrying import run_import

    guarded(lambda: run_import(folder=folder, file=file))


def _filters(command: _F) -> _F:
    """Add the options that narrow a prune. Their names are those of the store's filters."""
    for name, kind, told in reversed(
        (
            ("title-like", str, "In its title."),
            ("end-reason", str, "Why it ended."),
            ("cwd-prefix", str, "Its working folder, or one above."),
            ("model-like", str, "In the name of its model."),
            ("provider", str, "Who billed it."),
            ("user-id", str, "Whose it is."),
            ("chat-id", str, "Its chat."),
            ("chat-type", str, "Kind of its chat."),
            ("branch-like", str, "In its git branch."),
            ("min-messages", int, None),
            ("max-messages", int, None),
            ("min-tokens", int, "Input and output."),
            ("max-tokens", int, None),
            ("min-cost", float, "US dollars."),
            ("max-cost", float, None),
            ("min-tool-calls", int, None),
            ("max-tool-calls", int, None),
        )
    ):
        command = click.option(f"--{name}", type=kind, help=told)(command)
    return click.option("--archived/--not-archived", default=None, help="Put away, or not.")(command)


@sessions.command()
@_data
@click.option("--older-than", "age", required=True, metavar="AGE", help="As 30d, 12h or 90m, since the last activity.")
@click.option("--source", help="Of this source only.")
@_filters
@click.option("--dry-run", is_flag=True, help="Only count.")
def prune(folder: Path, age: str, source: str | None, dry_run: bool, **filters: Any) -> None:
    """Remove ended sessions without activity for long.

    Sessions that have not ended stay, and so do children, without a parent. Texts of filters are literal. A server may
    run meanwhile. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.ages import age_ms
    from aip_hermes.cli.sessions.pruning import run_prune_sessions

    run(run_prune_sessions(folder=folder, older_than_ms=age_ms(age), source=source, dry_run=dry_run, filters=filters))


@sessions.command()
@_data
@click.option("--repair", is_flag=True, help="Make the search index anew first; no server may run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def doctor(folder: Path, repair: bool, as_json: bool) -> None:
    """Examine the store of sessions and say what to do.

    One line per question: ok, warn or FAIL, and the remedy. Exit 1 where something fails.
    """
    from aip_hermes.cli.sessions.examining import run_examine

    sys.exit(run(cancelled_by_signals(run_examine(folder=folder, repair=repair, as_json=as_json))))
