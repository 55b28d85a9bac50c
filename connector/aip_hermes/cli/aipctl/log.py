"""`aipctl events list`: the log of all actions that a token may see, by page or as it grows."""

from __future__ import annotations

import shlex
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from aip_hermes.cli.aipctl.arguments import TEXT, URL
from aip_hermes.cli.aipctl.following import Printer
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import run
from aip_hermes.cli.aipctl.terminal import print_json

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection

__all__ = ["events"]


@click.group()
@global_options
def events() -> None:
    """What happens to all actions that the token may see."""


@events.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--cursor", metavar="C", type=TEXT, help="A position of an earlier answer: only what came after it.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Events of a page, at most 1000.")
@click.option("--kind", "kinds", metavar="K", type=TEXT, multiple=True, help="Only these kinds of events; repeatable.")
@click.option("--follow", is_flag=True, help="Print events as they come, until it is interrupted.")
@global_options
def events_list(url: str, cursor: str | None, limit: int | None, kinds: tuple[str, ...], follow: bool) -> None:
    """Print a page of the log of events, or follow it.

    The log has no end: go on with `next_cursor` of the page. With --follow stdout has one JSON document per line,
    {"event": …} and {"next_cursor": …}. A broken connection is taken up again behind the last position, so no line
    comes twice, also over a restart of the server.
    """
    if not follow:
        print_json(run(url, lambda connection: connection.event_log(cursor=cursor, limit=limit, kinds=kinds)))
        return
    printer = Printer(cursor=cursor)

    def go_on() -> str:
        options = [word for kind in kinds for word in ("--kind", kind)]
        position = [] if printer.cursor is None else ["--cursor", printer.cursor]
        return shlex.join(["aipctl", "events", "list", url, *options, "--follow", *position])

    async def work(connection: AipConnection) -> None:
        from aip_hermes.client import StreamLost

        try:
            async with aclosing(connection.follow_log(cursor=cursor, kinds=kinds, limit=limit)) as frames:
                async for frame in frames:
                    printer.show(frame)
        except StreamLost as exc:
            exc.next_step = go_on()
            raise
        finally:
            printer.close()

    run(url, work, interrupted=lambda: ("interrupted", f"  to follow on: {go_on()}"))
