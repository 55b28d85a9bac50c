"""`aipctl transcript`: a session and its lineage from a real server, and what a terminal gets of hostile text."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.cli.aipctl.transcript_view import print_transcript, print_tree
from aip_hermes.client.hermes_objects import session_of
from aip_hermes.client.lineage import edge_kind
from tests.support.client_command import aipctl_process
from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import LifecycleSite, lifecycle_site

NEXT = "20260406_164014_74b2d1"
HOSTILE = "\x1b[2Jred\u202e\nnext[bold]line[/bold]\x9b31m"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[LifecycleSite]:
    async with lifecycle_site(tmp_path, model=RecordingModel()) as running:
        yield running


async def told(site: LifecycleSite, *arguments: str, status: int = 0) -> Any:
    """Run the command with the requester's token; return its document, or its stderr where it fails."""
    name, *rest = arguments
    token = str(site.folder / "tokens" / "requester")
    command = ("transcript", name, site.url, *rest, "--native-bearer-token-file", token)
    async with aipctl_process(*command) as process:
        out, err = await process.communicate()
    assert process.returncode == status, err
    return json.loads(out) if status == 0 else err.decode()


def children(branch: Any) -> list[tuple[str, str]]:
    return [(each["session"]["id"], each["kind"]) for each in branch["children"]]


@pytest.mark.requirement("transcript:tree")
async def test_a_tree_shows_forks_compressions_and_delegates_from_any_of_its_rows(site: LifecycleSite) -> None:
    hermes = site.endpoint
    await hermes.create("trunk", title="Root")
    await hermes.db.create_session(
        "helper", "subagent", parent_session_id="trunk", model_config={"_delegate_from": "trunk"}
    )
    await hermes.client.post("/api/sessions/trunk/fork", json={"id": "fork"})
    await hermes.db.create_session(NEXT, "api_server", parent_session_id="fork")
    await hermes.db.end_session("fork", "compression")
    await hermes.db.create_session("chosen", "api_server", parent_session_id="fork")
    for asked in ("trunk", NEXT):
        found = await told(site, "tree", asked)
        assert (found["session_id"], found["complete"], found["root"]["kind"]) == (asked, True, "root")
        assert found["root"]["session"]["id"] == "trunk"
        assert children(found["root"]) == [("helper", "delegate"), ("fork", "fork")]
        assert children(found["root"]["children"][1]) == [(NEXT, "compression"), ("chosen", "unproven")]
    out = io.StringIO()
    print_tree(found, file=out, width=100)
    assert "└── fork  Root #2  (fork, 0 messages, ended as compression)" in out.getvalue()
    assert f"{NEXT}  (goes on after a compression, 0 messages, open)" in out.getvalue()


@pytest.mark.requirement("transcript:show")
async def test_a_session_is_shown_with_its_row_and_its_messages(site: LifecycleSite) -> None:
    await site.endpoint.create("s", title="Case")
    await site.endpoint.chat("s", "What is verified?")
    found = await told(site, "show", "s")
    assert (found["session"]["title"], found["session"]["message_count"]) == ("Case", 2)
    messages = found["messages"]
    assert (messages["session_id"], messages["own"], messages["reason"]) == ("s", True, "none")
    assert [(row["role"], row["content"]) for row in messages["data"]] == [
        ("user", "What is verified?"),
        ("assistant", "Reply 1"),
    ]
    out = io.StringIO()
    print_transcript(found, file=out, width=100)
    assert "What is verified?" in out.getvalue()
    refused = await told(site, "show", "nobody", status=1)
    assert "nobody" in refused
    assert "next:" in refused
    assert "Traceback" not in refused
    assert await told(site, "show", "s", "--endpoint", "elsewhere", status=1)


@pytest.mark.requirement("transcript:neutralised")
def test_what_an_endpoint_wrote_is_only_text_on_a_terminal() -> None:
    session = {"id": f"s{HOSTILE}", "title": HOSTILE, "end_reason": HOSTILE, "ended_at": 1e300, "message_count": 1}
    row = {"role": HOSTILE, "content": HOSTILE, "tool_calls": [{"name": HOSTILE}], "timestamp": 1.0}
    messages = {"session_id": HOSTILE, "reason": "unknown", "own": False, "data": [row]}
    out = io.StringIO()
    print_transcript({"session": session, "messages": messages}, file=out, width=80)
    print_transcript({"session": session, "messages": None}, file=out, width=80)
    branch = {"session": session, "kind": HOSTILE, "children": []}
    print_tree(
        {"session_id": "s", "complete": False, "root": {**branch, "kind": "root", "children": [branch]}}, file=out
    )
    shown = out.getvalue()
    assert [c for c in shown if c != "\n" and not c.isprintable()] == []
    assert "[bold]" in shown
    assert "1970-01-01 00:00:01Z" in shown
    assert "a child may be missing" in shown


def row(session_id: str, **members: Any) -> Any:
    return session_of({"session": {"id": session_id, **members}})


@pytest.mark.requirement("transcript:tree")
@pytest.mark.parametrize(
    ("child", "source", "parent_end", "kind"),
    [
        ("api_1796069436_fa077b4a", "api_server", "branched", "fork"),
        ("chosen", "api_server", "case_closed", "fork"),
        ("chosen", "api_server", None, "fork"),
        (NEXT, "api_server", "compression", "compression"),
        ("chosen", "api_server", "compression", "unproven"),
        (NEXT, "api_server", "branched", "unproven"),
        (NEXT, "subagent", "compression", "delegate"),
    ],
)
def test_an_edge_is_named_only_where_the_rows_leave_one_reading(
    child: str, source: str, parent_end: str | None, kind: str
) -> None:
    assert edge_kind(row(child, source=source), parent=row("p", end_reason=parent_end)) == kind
