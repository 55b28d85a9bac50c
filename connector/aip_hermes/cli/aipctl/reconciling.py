"""`aipctl action reconcile`: what became of actions whose answer was lost; the endpoint is read, nothing is sent again.

Stdout has the verdicts only; on a terminal stderr says how far it is and what each verdict asks for next.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from aip_hermes.cli.aipctl.arguments import ACTION_ID, ENDPOINT_ID, URL
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import FAILED, UNCERTAIN, run
from aip_hermes.cli.aipctl.terminal import print_json, say
from aip_hermes.ids import ActionId, EndpointId

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection

__all__ = ["action_reconcile"]

_UNDECIDED: Final = "indeterminate"


@click.command("reconcile", epilog="Exit codes besides the usual ones: 4 where an outcome is still unknown.")
@click.argument("url", metavar="URL", type=URL)
@click.argument("action_id", metavar="[ACTION_ID]", type=ACTION_ID, required=False)
@click.option(
    "--all-uncertain",
    is_flag=True,
    help="Every action of yours with an outcome that nobody knows.",
)
@click.option("--endpoint", metavar="ID", type=ENDPOINT_ID, help="With --all-uncertain: of this endpoint only.")
@global_options
def action_reconcile(url: str, action_id: ActionId | None, all_uncertain: bool, endpoint: EndpointId | None) -> None:
    """Look what became of an action that ended uncertain, and print the verdict with its evidence.

    applied, not_applied, partially_applied, or indeterminate; `next_step` says what is safe to do. It only reads, may
    be repeated, and never changes the action's result. With --all-uncertain it prints one document with all verdicts.
    """
    if all_uncertain == (action_id is not None):
        raise click.UsageError("give an ACTION_ID or --all-uncertain, not both")
    if endpoint is not None and not all_uncertain:
        raise click.UsageError("--endpoint needs --all-uncertain")
    if action_id is not None:
        _one(url, action_id)
    else:
        _all(url, endpoint)


def _one(url: str, action_id: ActionId) -> None:
    answer = run(url, lambda connection: connection.reconcile(action_id), action_id=action_id)
    print_json(answer)
    verdict = answer["reconciliation"]
    say(*_about(verdict, url=url))
    click.get_current_context().exit(UNCERTAIN if verdict.get("verdict") == _UNDECIDED else 0)


def _all(url: str, endpoint: EndpointId | None) -> None:
    verdicts: list[Mapping[str, Any]] = []
    failures: list[dict[str, Any]] = []

    async def work(connection: AipConnection) -> None:
        from aip_hermes.client import PeerError

        found = [each async for each in connection.every_action(outcome="unresolved", endpoint=endpoint)]
        for number, action in enumerate(found, start=1):
            action_id = ActionId(action["action_id"])
            try:
                verdict = (await connection.reconcile(action_id))["reconciliation"]
            except PeerError as exc:
                # Somebody else's, for example; the others are looked at all the same.
                failures.append({"action_id": action_id, "code": exc.code, "message": exc.message})
                say(f"[{number}/{len(found)}] {action_id}: {exc.code}: {exc.message}")
                continue
            verdicts.append(verdict)
            if sys.stderr.isatty():
                say(f"[{number}/{len(found)}] {action_id}: {verdict.get('verdict')}: {verdict.get('explanation')}")

    def stopped() -> list[str]:
        return [
            f"interrupted after {len(verdicts)} verdicts; they are kept, and nothing was sent to an endpoint but reads",
            f"  to go on: aipctl action reconcile {shlex.quote(url)} --all-uncertain",
        ]

    run(url, work, interrupted=stopped)
    print_json({"reconciliations": verdicts, "failures": failures})
    say(*_summary(verdicts, failures))
    undecided = any(verdict.get("verdict") == _UNDECIDED for verdict in verdicts)
    click.get_current_context().exit(FAILED if failures else UNCERTAIN if undecided else 0)


def _about(verdict: Mapping[str, Any], *, url: str) -> list[str]:
    action_id, outcome = verdict.get("action_id"), str(verdict.get("verdict")).replace("_", " ")
    lines = [f"action {action_id}: {outcome}: {verdict.get('explanation')}", f"  next: {verdict.get('next_step')}"]
    if (wait_ms := verdict.get("retry_after_ms")) is not None:
        again = f"aipctl action reconcile {shlex.quote(url)} {action_id}"
        lines.append(f"  after {wait_ms / 1000:g} s: {again}")
    return lines


def _summary(verdicts: list[Mapping[str, Any]], failures: list[dict[str, Any]]) -> list[str]:
    if not verdicts and not failures:
        return ["no action has an outcome that nobody knows"]
    counts: dict[str, int] = {}
    for verdict in verdicts:
        name = str(verdict.get("verdict"))
        counts[name] = counts.get(name, 0) + 1
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()))
    lines = [f"{len(verdicts)} reconciled: {said or 'none'}"]
    if failures:
        lines.append(f"  {len(failures)} could not be asked about; see `failures`")
    return lines
