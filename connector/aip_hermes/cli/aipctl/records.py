"""`aipctl action list` and `aipctl audit events`: pages of what a server has recorded."""

from __future__ import annotations

import shlex
from typing import Any

import click

from aip_hermes.cli.aipctl.arguments import (
    ACTION_ID,
    AIP_SESSION_ID,
    APPROVAL_ID,
    CAPABILITY_ID,
    ENDPOINT_ID,
    PRINCIPAL_ID,
    TENANT_ID,
    TEXT,
    URL,
)
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import run
from aip_hermes.cli.aipctl.terminal import print_json, say

__all__ = ["action_list", "audit", "say_more"]

_STATES = (
    "accepted",
    "queued",
    "running",
    "streaming",
    "pending_approval",
    "cancelling",
    "cancelled",
    "completed",
    "failed",
    "expired",
    "dead_lettered",
)


@click.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--state", metavar="S", type=click.Choice(_STATES), help=f"One of {', '.join(_STATES)}.")
@click.option(
    "--outcome",
    type=click.Choice(["uncertain", "unresolved", "certain"]),
    help="uncertain: may have happened, unproven. unresolved: and no reconciliation has found out.",
)
@click.option("--capability-id", metavar="ID", type=CAPABILITY_ID)
@click.option("--endpoint", metavar="ID", type=ENDPOINT_ID, help="Of the capabilities of this endpoint.")
@click.option("--session-id", metavar="ID", type=AIP_SESSION_ID, help="An AIP session; a Hermes transcript is none.")
@click.option("--principal-id", metavar="ID", type=PRINCIPAL_ID)
@click.option("--approval-id", metavar="ID", type=APPROVAL_ID)
@click.option("--transaction-id", metavar="ID", type=TEXT)
@click.option("--since", metavar="TIME", type=TEXT, help="Changed at or after, RFC 3339: 2030-01-01T00:00:00Z.")
@click.option("--until", metavar="TIME", type=TEXT, help="Changed at or before.")
@click.option("--cursor", metavar="C", type=TEXT, help="`cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Actions of a page, at most 1000.")
@click.option("--include-results", is_flag=True)
@click.option("--include-receipts", is_flag=True)
@global_options
def action_list(url: str, **params: Any) -> None:
    """Print a page of actions, the least recently changed first.

    A page has 100 actions, or --limit. `total_size` counts all that the options let through.
    """
    answer = run(url, lambda connection: connection.actions(**params))
    print_json(answer)
    say_more(answer["action_list"])


@click.group()
@global_options
def audit() -> None:
    """Who did what, as the server's audit log has it."""


@audit.command("events")
@click.argument("url", metavar="URL", type=URL)
@click.option("--action-id", metavar="ID", type=ACTION_ID)
@click.option("--session-id", metavar="ID", type=AIP_SESSION_ID, help="An AIP session; a Hermes transcript is none.")
@click.option("--principal-id", metavar="ID", type=PRINCIPAL_ID)
@click.option("--tenant-id", metavar="ID", type=TENANT_ID)
@click.option("--transaction-id", metavar="ID", type=TEXT)
@click.option("--from", "since", metavar="TIME", type=TEXT, help="At or after, RFC 3339: 2030-01-01T00:00:00Z.")
@click.option("--to", "until", metavar="TIME", type=TEXT, help="At or before.")
@click.option("--cursor", metavar="C", type=TEXT, help="`cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Records of a page, at most 1000.")
@click.option("--include-receipts", is_flag=True, help="The chains too; needs the scope audit:export.")
@click.option("--export", is_flag=True, help="For a file that is kept; needs the scope audit:export.")
@global_options
def audit_events(url: str, **params: Any) -> None:
    """Print a page of audit records, oldest first.

    Without the scope audit:sensitive records and receipts come without their data, and such a chain can't be verified.
    """
    answer = run(url, lambda connection: connection.audit_events(**params))
    print_json(answer)
    say_more(answer["audit_query_result"])


def say_more(page: Any) -> None:
    """Say that a page is not the end, so that nobody takes its length for the number of all."""
    cursor = page.get("cursor") if isinstance(page, dict) else None
    if isinstance(cursor, str):
        say(f"there is more; next: the same command with --cursor {shlex.quote(cursor)}")
