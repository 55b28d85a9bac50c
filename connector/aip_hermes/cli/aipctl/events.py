"""`aipctl action events` and `aipctl action cancel`: what happens to an action, and asking it to stop."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from aip_hermes.cli.aipctl import hints
from aip_hermes.cli.aipctl.arguments import ACTION_ID, TEXT, URL
from aip_hermes.cli.aipctl.following import Printer, events_command
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import UNCERTAIN, Sent, run
from aip_hermes.cli.aipctl.terminal import print_json, say
from aip_hermes.ids import ActionId

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection

__all__ = ["action_cancel", "action_events"]


@click.command("events")
@click.argument("url", metavar="URL", type=URL)
@click.argument("action_id", metavar="ACTION_ID", type=ACTION_ID)
@click.option("--cursor", metavar="C", type=TEXT, help="A position of an earlier answer: only what came after it.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Most entries of a page.")
@click.option("--kind", "kinds", metavar="K", type=TEXT, multiple=True, help="Only these kinds of events; repeatable.")
@click.option("--include-chunks", is_flag=True, help="Chunks of the answer too.")
@click.option("--follow", is_flag=True, help="Print frames as they come, to the action's end.")
@global_options
def action_events(
    url: str,
    action_id: ActionId,
    cursor: str | None,
    limit: int | None,
    kinds: tuple[str, ...],
    include_chunks: bool,
    follow: bool,
) -> None:
    """Print a page of what happened to an action, or follow it.

    With --follow stdout has one JSON document per line: {"event": …}, {"chunk": …}, {"next_cursor": …} and, at the end,
    {"terminal": true, …}. A broken connection is taken up again behind the last position, so no line comes twice. An
    action that has ended is told from its beginning. Ending this command stops nothing at the server.
    """
    if not follow:
        print_json(
            run(
                url,
                lambda connection: connection.events(
                    action_id, cursor=cursor, limit=limit, kinds=kinds, include_chunks=include_chunks
                ),
                action_id=action_id,
            )
        )
        return
    printer = Printer(cursor=cursor)
    options = [
        *(word for kind in kinds for word in ("--kind", kind)),
        *(["--include-chunks"] if include_chunks else []),
    ]

    def goes_on() -> list[str]:
        return [
            f"interrupted; action {action_id} goes on",
            f"  to follow on: {events_command(url, action_id, *options, cursor=printer.cursor)}",
            f"  to stop it: {hints.cancel_command(url, action_id)}",
        ]

    async def work(connection: AipConnection) -> None:
        from aip_hermes.client import StreamLost

        frames = connection.follow(action_id, cursor=cursor, kinds=kinds, include_chunks=include_chunks, limit=limit)
        try:
            async with aclosing(frames):
                async for frame in frames:
                    printer.show(frame)
        except StreamLost as exc:
            exc.next_step = events_command(url, action_id, *options, cursor=printer.cursor)
            raise
        finally:
            printer.close()

    run(url, work, action_id=action_id, interrupted=goes_on)
    say(*hints.about_status({"state": "completed"}, url=url, action_id=action_id))


@click.command("cancel")
@click.argument("url", metavar="URL", type=URL)
@click.argument("action_id", metavar="ACTION_ID", type=ACTION_ID)
@click.option("--reason", metavar="R", type=TEXT, help="Kept with the result.")
@global_options
def action_cancel(url: str, action_id: ActionId, reason: str | None) -> None:
    """Ask to cancel an action, and print its result.

    What was not sent is not sent; what can be stopped is stopped once; an action that had ended answers its result.
    Exit code 4 when the effect may have happened.
    """
    from aip_hermes.client import outcome_of

    answer = run(
        url,
        lambda connection: connection.cancel(action_id, reason),
        sent=Sent.cancel(url, action_id),
        action_id=action_id,
    )
    print_json(answer)
    result = answer["action_result"]
    if not isinstance(result, dict):
        return
    outcome = outcome_of(result)
    say(*hints.about_cancel(result, url=url, action_id=action_id, outcome=outcome))
    click.get_current_context().exit(UNCERTAIN if outcome == "uncertain" else 0)
