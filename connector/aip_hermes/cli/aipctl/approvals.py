"""`aipctl approval`: see what waits, see what a decision binds, decide."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from aip_hermes.cli.aipctl.arguments import APPROVAL_ID, JSON, TEXT, URL, JsonSource
from aip_hermes.cli.aipctl.options import current_options, global_options
from aip_hermes.cli.aipctl.running import FAILED, CommandFailed, Sent, run
from aip_hermes.cli.aipctl.terminal import print_json, say
from aip_hermes.ids import ApprovalId
from aip_hermes.ports import SystemClock, new_id

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection, JsonObject, Reply

__all__ = ["approval"]


@click.group()
@global_options
def approval() -> None:
    """What waits for a decision, what a decision binds, and the decision."""


@approval.command("records")
@click.argument("url", metavar="URL", type=URL)
@click.option("--status", metavar="S", help="pending, approved, denied, expired or revoked.")
@click.option("--approver", metavar="ID")
@click.option("--requester", metavar="ID")
@click.option("--tenant-id", metavar="ID")
@click.option("--cursor", metavar="C", help="`cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Records of a page, at most 1000.")
@click.option("--include-action-status", is_flag=True)
@click.option("--include-receipts", is_flag=True)
@global_options
def approval_records(url: str, **params: Any) -> None:
    """Print approval records, oldest first."""
    print_json(run(url, lambda connection: connection.approvals(**params)))


@approval.command("get")
@click.argument("url", metavar="URL", type=URL)
@click.argument("approval_id", metavar="APPROVAL_ID", type=APPROVAL_ID)
@click.option("--include-action-status", is_flag=True)
@click.option("--include-receipts", is_flag=True)
@global_options
def approval_get(url: str, approval_id: ApprovalId, **params: Any) -> None:
    """Print one approval record."""
    print_json(run(url, lambda connection: connection.approval(approval_id, **params)))


@approval.command("show")
@click.argument("url", metavar="URL", type=URL)
@click.argument("approval_id", metavar="APPROVAL_ID", type=APPROVAL_ID)
@click.option("--include-receipts", is_flag=True)
@click.option("--output", type=click.Choice(["json", "table"]), help="Default: a table on a terminal, else JSON.")
@global_options
def approval_show(
    url: str, approval_id: ApprovalId, include_receipts: bool, output: Literal["json", "table"] | None
) -> None:
    """Show all that a decision binds: who, what, the exact input, the policy, the state of the action."""
    answer, withheld = run(url, lambda connection: _everything(connection, approval_id, include_receipts))
    if output == "table" or (output is None and sys.stdout.isatty()):
        from aip_hermes.cli.aipctl.approval_view import print_approval

        print_approval(answer["approval_record_view"])
    else:
        print_json(answer)
    if withheld:
        say(
            "the exact input is not shown: this token lacks approval:export or approval:sensitive",
            "  next: show it with a reviewer's token before deciding",
        )


@approval.command("decide")
@click.argument("url", metavar="URL", type=URL)
@click.argument("source", metavar="J", type=JSON)
@global_options
def approval_decide(url: str, source: JsonSource) -> None:
    """Send an ApprovalDecision as it is (JSON, @file or -) and print the whole reply."""
    decision = source.parsed()
    if not isinstance(decision, dict) or not isinstance(decision.get("approval_id"), str):
        raise click.UsageError(f"{source.origin} is no ApprovalDecision: an object with `approval_id` is needed")
    sent = Sent.decision(url, decision["approval_id"])
    _report(run(url, lambda connection: connection.send_decision(decision), sent=sent), url=url)


def _verdict(name: str, decision: Literal["approved", "denied"], help: str) -> None:
    @approval.command(name, help=help)
    @click.argument("url", metavar="URL", type=URL)
    @click.argument("approval_id", metavar="APPROVAL_ID", type=APPROVAL_ID)
    @click.option("--reason", metavar="R", type=TEXT, required=True, help="Kept with the decision.")
    @global_options
    def verdict(url: str, approval_id: ApprovalId, reason: str) -> None:
        named = current_options().principal_id

        async def decide(connection: AipConnection) -> Reply:
            return await _decide(connection, approval_id, decision=decision, reason=reason, named=named)

        _report(run(url, decide, sent=Sent.decision(url, approval_id)), url=url)


_verdict("approve", "approved", "Approve the action that waits, after reading the record. It runs within this call.")
_verdict("deny", "denied", "Deny the action that waits, after reading the record.")


async def _everything(
    connection: AipConnection, approval_id: ApprovalId, include_receipts: bool
) -> tuple[JsonObject, bool]:
    """Return the record, and whether its exact input was withheld from this token."""
    from aip_hermes.client import PeerError

    params = {"include_action_status": True, "include_receipts": include_receipts}
    try:
        return await connection.approval(approval_id, **params, include_evidence_payload=True), False
    except PeerError as exc:
        if exc.code != "auth.not_authorized":
            raise
    # Refused for the input or for the whole record; asked without the input, a refusal means the record.
    return await connection.approval(approval_id, **params), True


async def _decide(
    connection: AipConnection,
    approval_id: ApprovalId,
    *,
    decision: Literal["approved", "denied"],
    reason: str,
    named: str | None,
) -> Reply:
    from aip_hermes.client import decision_on

    record = (await connection.approval(approval_id))["approval_record_view"]
    approver = await connection.approver()
    if named is not None and approver.get("id") != named:
        raise CommandFailed(
            f"the token is {approver.get('id')}, not {named}; nothing was sent",
            "  next: name the token file of that principal, or leave --native-principal-id out",
            exit_code=FAILED,
        )
    made = decision_on(
        record,
        approval_id=approval_id,
        decision=decision,
        reason=reason,
        approver=approver,
        decision_id=new_id("decision_"),
        decided_at_ms=SystemClock().now_ms(),
    )
    request = record["request"]
    say(
        f"decision id: {made['decision_id']}",
        f"deciding as {approver.get('id')}: {decision}, {request.get('capability_id')}"
        f" for {_id(request.get('requester'))}"
        f" (action {request.get('action_id')}, expires {request.get('expires_at', 'never')})",
    )
    return await connection.send_decision(made)


def _report(reply: Reply, *, url: str) -> None:
    print_json(reply.envelope)
    for event in reply.body.get("events", []):
        if isinstance(event, dict) and event.get("kind") in (
            "aip.action.resumed_result",
            "aip.action.approval_terminal",
        ):
            action_id = event.get("action_id")
            data = event.get("data")
            status = data.get("status") if isinstance(data, dict) else None
            say(
                f"action {action_id}: {status or 'ended by this decision'}",
                f"  next: aipctl action result {shlex.quote(url)} {action_id}",
            )


def _id(principal: Any) -> str:
    return str(principal.get("id")) if isinstance(principal, dict) else "?"
