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

_KINDS = (
    "aip.approval.requested",
    "aip.approval.granted",
    "aip.approval.denied",
    "aip.approval.expired",
    "aip.approval.revoked",
    "aip.action.resumed_result",
    "aip.action.approval_terminal",
)


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
    """Show all that a decision binds: who, what, the exact input, the policy, the votes, what else would be touched."""
    answer, withheld = run(url, lambda connection: _everything(connection, approval_id, include_receipts))
    if output == "table" or (output is None and sys.stdout.isatty()):
        from aip_hermes.cli.aipctl.approval_view import print_approval

        record, context = answer["approval_record_view"], answer["approval_context"]
        print_approval(record, context, now_ms=SystemClock().now_ms())
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


@approval.command("revoke")
@click.argument("url", metavar="URL", type=URL)
@click.argument("approval_id", metavar="APPROVAL_ID", type=APPROVAL_ID)
@click.option("--reason", metavar="R", type=TEXT, required=True, help="Kept with the decision.")
@click.option("--target", metavar="ID", type=TEXT, help="The approving decision; default: the only one, else your own.")
@global_options
def approval_revoke(url: str, approval_id: ApprovalId, reason: str, target: str | None) -> None:
    """Take an approving decision back, as long as its action has sent nothing."""
    named = current_options().principal_id

    async def revoke(connection: AipConnection) -> Reply:
        return await _revoke(connection, approval_id, target=target, reason=reason, named=named)

    _report(run(url, revoke, sent=Sent.decision(url, approval_id)), url=url)


@approval.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--cursor", metavar="C", help="`next_cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--kind", "kinds", metavar="K", multiple=True, help="Of these kinds only; again for several.")
@global_options
def approval_list(url: str, cursor: str | None, limit: int, kinds: tuple[str, ...]) -> None:
    """Print the events of approvals as one envelope. The records themselves: `approval records`."""
    asked: JsonObject = {"limit": limit, "kinds": list(kinds or _KINDS)}
    if cursor is not None:
        asked["cursor"] = cursor
    print_json(run(url, lambda connection: connection.send_body({"event_stream_request": asked})).envelope)


@approval.command("request")
@click.argument("url", metavar="URL", type=URL)
@click.argument("source", metavar="J", type=JSON)
@global_options
def approval_request(url: str, source: JsonSource) -> None:
    """Send an ApprovalRequest as it is (JSON, @file or -) and print the whole reply.

    A server that asks for approvals by itself, as ours does when an action needs one, refuses it.
    """
    request = source.parsed()
    if not isinstance(request, dict) or not isinstance(request.get("id"), str):
        raise click.UsageError(f"{source.origin} is no ApprovalRequest: an object with `id` is needed")
    sent = Sent.decision(url, request["id"])
    print_json(run(url, lambda connection: connection.send_body({"approval_request": request}), sent=sent).envelope)


async def _everything(
    connection: AipConnection, approval_id: ApprovalId, include_receipts: bool
) -> tuple[JsonObject, bool]:
    """Return the record with its context, and whether its exact input was withheld from this token."""
    from aip_hermes.client import PeerError

    params = {"include_action_status": True, "include_receipts": include_receipts}
    withheld = False
    try:
        answer = await connection.approval(approval_id, **params, include_evidence_payload=True)
    except PeerError as exc:
        if exc.code != "auth.not_authorized":
            raise
        # Refused for the input or for the whole record; asked without the input, a refusal means the record.
        answer, withheld = await connection.approval(approval_id, **params), True
    return {**answer, "approval_context": await _context(connection, approval_id)}, withheld


async def _context(connection: AipConnection, approval_id: ApprovalId) -> JsonObject:
    """Return the approval's context, or why there is none: a decision can be taken without it."""
    from aip_hermes.client import ClientFailure

    try:
        found = (await connection.approval_context(approval_id))["approval_context"]
    except ClientFailure as exc:
        return {"not_available": f"{exc.code}: this server gave no context"}
    return found if isinstance(found, dict) else {"not_available": "this server's context is no object"}


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
    approver = await _approver(connection, named)
    made = decision_on(
        record,
        approval_id=approval_id,
        decision=decision,
        reason=reason,
        approver=approver,
        decision_id=new_id("decision_"),
        decided_at_ms=SystemClock().now_ms(),
    )
    _say_what(record["request"], made)
    return await connection.send_decision(made)


async def _revoke(
    connection: AipConnection, approval_id: ApprovalId, *, target: str | None, reason: str, named: str | None
) -> Reply:
    from aip_hermes.client import revocation_of

    record = (await connection.approval(approval_id))["approval_record_view"]
    approver = await _approver(connection, named)
    decisions = (await _context(connection, approval_id)).get("decisions")
    made = revocation_of(
        record,
        [each for each in decisions if isinstance(each, dict)] if isinstance(decisions, list) else [],
        target_decision_id=target,
        approval_id=approval_id,
        reason=reason,
        approver=approver,
        decision_id=new_id("decision_"),
        decided_at_ms=SystemClock().now_ms(),
    )
    _say_what(record["request"], made)
    return await connection.send_decision(made)


async def _approver(connection: AipConnection, named: str | None) -> JsonObject:
    """Return the principal of the token. Raises: CommandFailed where another one was named."""
    approver = await connection.approver()
    if named is not None and approver.get("id") != named:
        raise CommandFailed(
            f"the token is {approver.get('id')}, not {named}; nothing was sent",
            "  next: name the token file of that principal, or leave --native-principal-id out",
            exit_code=FAILED,
        )
    return approver


def _say_what(request: JsonObject, made: JsonObject) -> None:
    """Say what is decided about, and under which id, before it leaves."""
    revoked = f" {made['target_decision_id']}" if "target_decision_id" in made else ""
    say(
        f"decision id: {made['decision_id']}",
        f"deciding as {_id(made['approver'])}: {made['decision']}{revoked}, {request.get('capability_id')}"
        f" for {_id(request.get('requester'))}"
        f" (action {request.get('action_id')}, expires {request.get('expires_at', 'never')})",
    )


def _report(reply: Reply, *, url: str) -> None:
    print_json(reply.envelope)
    for event in reply.body.get("events", []):
        if isinstance(event, dict) and event.get("kind") == "aip.approval.vote_recorded":
            told = event.get("data")
            given, needed = (
                (told.get("approvals"), told.get("approvals_needed")) if isinstance(told, dict) else ("?", "?")
            )
            say(f"counted: {given} of {needed} approvals; the action still waits")
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
