"""`aipctl transcript show|tree`: what a person wants to look at of a Hermes session.

Reads only. A terminal gets tables, everything else one JSON document with the endpoint's own members.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from aip_hermes.cli.aipctl.arguments import ENDPOINT_ID, HERMES_SESSION_ID, URL
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import run
from aip_hermes.cli.aipctl.terminal import print_json
from aip_hermes.ids import ActionId, CapabilityId, EndpointId, HermesSessionId
from aip_hermes.ports import new_id

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection
    from aip_hermes.client.lifecycle.reading import SessionReads
    from aip_hermes.client.lineage import Branch
    from aip_hermes.client.results import CallResult

__all__ = ["transcript"]


@click.group()
@global_options
def transcript() -> None:
    """Look at a Hermes session: its row, its turns, where it came from."""


@transcript.command("show")
@click.argument("url", metavar="URL", type=URL)
@click.argument("session_id", metavar="SESSION_ID", type=HERMES_SESSION_ID)
@click.option("--endpoint", metavar="ID", type=ENDPOINT_ID, default="primary", show_default=True)
@global_options
def transcript_show(url: str, session_id: HermesSessionId, endpoint: EndpointId) -> None:
    """Show the row of a session and its active messages.

    On a terminal as a table, otherwise as JSON: {"session", "messages": {"session_id", "reason", "own", "data"}}. With
    `own` false the endpoint answered with another session's messages.
    """

    async def work(reads: SessionReads) -> dict[str, Any]:
        row = await reads.get(session_id)
        active = await reads.messages(session_id)
        if active is None:
            return {"session": row.raw, "messages": None}
        data = [message.raw for message in active.messages]
        told = {"session_id": str(active.whose), "reason": active.reason, "own": active.own, "data": data}
        return {"session": row.raw, "messages": told}

    found = _reading(url, endpoint, work)
    if not sys.stdout.isatty():
        print_json(found)
        return
    from aip_hermes.cli.aipctl.transcript_view import print_transcript

    print_transcript(found)


@transcript.command("tree")
@click.argument("url", metavar="URL", type=URL)
@click.argument("session_id", metavar="SESSION_ID", type=HERMES_SESSION_ID)
@click.option("--endpoint", metavar="ID", type=ENDPOINT_ID, default="primary", show_default=True)
@global_options
def transcript_tree(url: str, session_id: HermesSessionId, endpoint: EndpointId) -> None:
    """Show the tree that a session is part of: forks, compressions, delegates.

    On a terminal as a tree, otherwise as JSON: {"session_id", "complete", "root": {"session", "kind", "children"}}.
    """

    async def work(reads: SessionReads) -> dict[str, Any]:
        from aip_hermes.client.lineage import read_lineage

        lineage = await read_lineage(reads, session_id)
        return {"session_id": str(session_id), "complete": lineage.complete, "root": _branch(lineage.root)}

    found = _reading(url, endpoint, work)
    if not sys.stdout.isatty():
        print_json(found)
        return
    from aip_hermes.cli.aipctl.transcript_view import print_tree

    print_tree(found)


def _reading(
    url: str, endpoint: EndpointId, work: Callable[[SessionReads], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    async def with_reads(connection: AipConnection) -> dict[str, Any]:
        from aip_hermes.client.identities import CallIdentities
        from aip_hermes.client.lifecycle.reading import SessionReads
        from aip_hermes.client.results import call_result

        async def call(capability_id: CapabilityId, input: dict[str, Any]) -> CallResult:
            action_id = ActionId(new_id("act_"))
            reply = await connection.call(capability_id, input, action_id=action_id)
            return call_result(reply.body, identities=CallIdentities(action_id=action_id), ack=reply.body_key == "ack")

        return await work(SessionReads(call, endpoint=endpoint, page_size=200, rounds=3))

    return run(url, with_reads)


def _branch(branch: Branch) -> dict[str, Any]:
    return {"session": branch.row.raw, "kind": branch.kind, "children": [_branch(each) for each in branch.children]}
