"""`aipctl action`: submit an action, and look up what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from aip_hermes.cli.aipctl import hints
from aip_hermes.cli.aipctl.arguments import ACTION_ID, CAPABILITY_ID, IDEMPOTENCY_KEY, JSON, TEXT, URL, JsonSource
from aip_hermes.cli.aipctl.events import action_cancel, action_events
from aip_hermes.cli.aipctl.following import Printer, call_and_follow
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.reconciling import action_reconcile
from aip_hermes.cli.aipctl.records import action_list
from aip_hermes.cli.aipctl.running import FAILED, UNCERTAIN, Sent, run
from aip_hermes.cli.aipctl.terminal import print_json, print_json_line, say
from aip_hermes.ids import ActionId, CapabilityId, IdempotencyKey
from aip_hermes.ports import new_id

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection, Reply

__all__ = ["action"]

_ALWAYS = {"connector_failed": FAILED, "uncertain": UNCERTAIN}
_ON_STATUS = {"failed": 3, "pending": 5, "cancelled": 6}


@click.group()
@global_options
def action() -> None:
    """Call a capability once, look up a call by its Action ID, or list calls."""


action.add_command(action_list)
action.add_command(action_events)
action.add_command(action_cancel)
action.add_command(action_reconcile)


@action.command("call", epilog="Exit codes besides the usual ones: with --fail-on-status 3, 5 and 6.")
@click.argument("url", metavar="URL", type=URL)
@click.argument("capability_id", metavar="CAPABILITY", type=CAPABILITY_ID)
@click.option("--input", "source", metavar="J", type=JSON, default="{}", show_default=True, help="JSON, @file or -.")
@click.option("--action-id", metavar="ID", type=ACTION_ID, help="act_…; a new one is made, and shown before sending.")
@click.option(
    "--idempotency-key", metavar="K", type=IDEMPOTENCY_KEY, help="Kept by you; the same key never runs twice."
)
@click.option("--generate-key", is_flag=True, help="Make a key, and show it before sending. None is made without this.")
@click.option("--mode", type=click.Choice(["sync", "async", "streaming"]), help="Not sent unless given.")
@click.option("--follow", is_flag=True, help="With --mode streaming: print frames as they come, then the reply.")
@click.option("--identity", metavar="J", type=JSON, help="Identity context, as --input.")
@click.option("--approval", metavar="J", type=JSON, help="An approved decision, as --input.")
@click.option(
    "--transaction-mode",
    type=click.Choice(["execute", "dry-run", "plan", "commit", "compensate", "rollback-not-supported"]),
)
@click.option("--transaction-id", metavar="ID", type=TEXT)
@click.option("--plan-id", metavar="ID", type=TEXT)
@click.option("--compensation-for", metavar="ID", type=ACTION_ID)
@click.option("--fail-on-status", is_flag=True, help="Exit 3 failed, 5 pending, 6 cancelled, instead of 0.")
@global_options
def action_call(
    url: str,
    capability_id: CapabilityId,
    source: JsonSource,
    action_id: ActionId | None,
    idempotency_key: IdempotencyKey | None,
    generate_key: bool,
    mode: Literal["sync", "async", "streaming"] | None,
    follow: bool,
    identity: JsonSource | None,
    approval: JsonSource | None,
    transaction_mode: str | None,
    transaction_id: str | None,
    plan_id: str | None,
    compensation_for: ActionId | None,
    fail_on_status: bool,
) -> None:
    """Submit one action and print the whole reply.

    A failed provider call exits 1, an unknown outcome 4. A lost answer is looked up with `aipctl action status`, by the
    Action ID. The server goes on with an action when this command is ended: see `aipctl action events` and `cancel`.

    With --follow stdout has one JSON document per line: the frames as `aipctl action events --follow` prints them, and
    as the last line the whole reply.
    """
    if follow and mode != "streaming":
        raise click.UsageError("--follow needs --mode streaming")
    if generate_key and idempotency_key is not None:
        raise click.UsageError("give one of --idempotency-key and --generate-key, not both")
    body = source.parsed()
    extra = {name: part.parsed() for name, part in (("identity", identity), ("approval", approval)) if part is not None}
    transaction = _transaction(transaction_mode, transaction_id, plan_id, compensation_for)
    if transaction is not None:
        extra["transaction"] = transaction
    # Shown before the first byte leaves, so that a client that dies at any later moment can still be asked about.
    if action_id is None:
        action_id = ActionId(new_id("act_"))
        say(f"action id: {action_id}")
    if generate_key:
        idempotency_key = IdempotencyKey(new_id("key_"))
        say(f"idempotency key: {idempotency_key}")
    known = action_id

    sent = Sent.action(url, known)

    async def call(connection: AipConnection) -> Reply:
        sending = connection.call(
            capability_id, body, action_id=known, idempotency_key=idempotency_key, mode=mode, extra=extra
        )
        if not follow:
            return await sending
        return await call_and_follow(connection, sending, action_id=known, printer=Printer())

    try:
        reply = run(url, call, sent=sent)
        (print_json_line if follow else print_json)(reply.envelope)
    except BrokenPipeError:
        say(f"nobody reads the output any more; next: {sent.query}", *sent.goes_on)
        raise
    if reply.body_key == "ack":
        say(*hints.about_ack(reply.body, url=url, action_id=known))
    if reply.result is not None:
        say(*hints.about_result(reply.result, url=url, action_id=known, sent_input=body, outcome=reply.outcome))
    codes = {**_ALWAYS, **(_ON_STATUS if fail_on_status else {})}
    click.get_current_context().exit(codes.get(reply.outcome, 0))


@action.command("status")
@click.argument("url", metavar="URL", type=URL)
@click.argument("action_id", metavar="ACTION_ID", type=ACTION_ID)
@click.option("--include-result", is_flag=True)
@click.option("--include-receipts", is_flag=True)
@click.option("--include-chunks", is_flag=True)
@click.option("--wait-ms", metavar="N", type=click.IntRange(min=0), help="Wait at most this long for the end.")
@global_options
def action_status(url: str, action_id: ActionId, **params: Any) -> None:
    """Print the state of an action."""
    answer = run(url, lambda connection: connection.status(action_id, **params), action_id=action_id)
    print_json(answer)
    say(*hints.about_status(answer["action_status"], url=url, action_id=action_id))


@action.command("result")
@click.argument("url", metavar="URL", type=URL)
@click.argument("action_id", metavar="ACTION_ID", type=ACTION_ID)
@click.option("--wait-ms", metavar="N", type=click.IntRange(min=0), help="Wait at most this long for a result.")
@click.option("--include-receipt", is_flag=True)
@click.option("--include-terminal-events", is_flag=True)
@global_options
def action_result(url: str, action_id: ActionId, **params: Any) -> None:
    """Print the result of an action."""
    from aip_hermes.client import outcome_of

    answer = run(url, lambda connection: connection.result(action_id, **params), action_id=action_id)
    print_json(answer)
    result = answer["action_result"]
    if isinstance(result, dict):
        outcome = outcome_of(result)
        say(*hints.about_result(result, url=url, action_id=action_id, sent_input=None, outcome=outcome))


def _transaction(
    mode: str | None, transaction_id: str | None, plan_id: str | None, compensation_for: ActionId | None
) -> dict[str, str] | None:
    members = {"transaction_id": transaction_id, "plan_id": plan_id, "compensation_for": compensation_for}
    given = {name: str(value) for name, value in members.items() if value is not None}
    if mode is None:
        if given:
            raise click.UsageError(f"--{next(iter(given)).replace('_', '-')} needs --transaction-mode")
        return None
    return {"mode": mode.replace("-", "_"), **given}
