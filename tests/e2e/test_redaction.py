"""Where what people and providers say is found afterwards: in the columns that may hold it, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from aip_hermes.ports import new_id
from tests.support.marked_life import SESSION, Life, living
from tests.support.markers import CREDENTIALS, MARKERS, found_in, found_in_tables, mark
from tests.support.processes import AIP_HERMES

TURN: Final = {"message", "reply", "reasoning", "toolargs", "toolresult"}
INPUT: Final = {"message", "system", "prompt", "objective", "context", "jobname", "jobprompt", "title", "patched"}

ALLOWED: Final[Mapping[str, set[str]]] = {
    # What was submitted stays until it ran: an action that waits, for a worker or for a reviewer.
    "actions.parked": {*INPUT, "model", "sessionkey", "key", "trace"},
    # What was answered: a transcript until it expires, rows with their titles, and what the provider complained of.
    "actions.result": {*TURN, "runtext", "title", "patched", "complaint", "page", "withdrawn"},
    "chunks.chunk": {*TURN, "runtext"},
    # Why somebody decided is the point of the record.
    "approvals.decision": {"reason", "veto"},
    "approval_decisions.record": {"reason", "veto"},
    # The fence compares keys.
    "actions.key_text": {"key"},
    "idempotency_keys.key_text": {"key"},
}
"""Column to the fields that it may hold (designs D19, D23). A table or a column that is new holds none of them."""

EXPECTED: Final[Mapping[str, set[str]]] = {
    "actions.parked": {"objective", "context", "jobprompt"},
    "actions.result": {*TURN, "runtext", "title", "patched", "complaint", "page"},
    "chunks.chunk": {*TURN, "runtext"},
    "actions.key_text": {"key"},
}
"""What must be found while approvals wait: the life has planted it, and the search sees it."""

READS: Final = (
    "/aip/v1/events?limit=1000",
    "/aip/v1/audit/events?limit=1000&export=true&include_receipts=true",
    "/aip/v1/actions?limit=1000",
    "/metrics",
    "/ready",
    "/aip/v1/manifest",
    "/aip/v1/capabilities?limit=100",
    "/aip/v1/me",
)
"""What is asked about many actions at once. None of it holds a marker."""


def beyond(found: Mapping[str, set[str]], allowed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return what stands where it may not."""
    left = {column: fields - allowed.get(column, set()) for column, fields in found.items()}
    return {column: fields for column, fields in left.items() if fields}


async def turns(life: Life) -> None:
    """Sessions and turns, one of each end: completed, refused, broken off, streamed, asynchronous, never started."""
    session = {"session_id": SESSION}
    said = {"message": mark("message"), "system_message": mark("system"), "session_key": mark("sessionkey")}
    made = {"id": "s4", "title": mark("title"), "system_prompt": mark("prompt"), "model": mark("model")}
    steps: list[tuple[str, dict[str, Any], str, str | None]] = [
        ("session_create", {"body": made, "session_key": mark("sessionkey")}, "sync", "completed"),
        ("session_chat", session | said, "sync", "completed"),
        ("session_chat_stream", session | said, "streaming", "completed"),
        ("session_messages", session, "sync", "completed"),
        ("session_patch", {**session, "title": mark("patched")}, "sync", "completed"),
        ("session_patch", {"session_id": "s3", "title": mark("title")}, "sync", "failed"),
        ("session_fork", {"session_id": "s2", "body": {"id": "s5", "title": mark("title")}}, "sync", "completed"),
        ("session_chat", {"session_id": "s2", **said}, "sync", "failed"),
        ("session_chat", {"session_id": "s3", **said}, "sync", "failed"),
        ("chat", {"messages": [{"role": "user", "content": mark("message")}]}, "sync", "completed"),
        ("responses", {"input": mark("message"), "instructions": mark("system")}, "sync", "completed"),
        ("run_start", {"input": mark("message"), "instructions": mark("system")}, "sync", "completed"),
        ("run_events", {"run_id": "run_1"}, "sync", "completed"),
        ("session_get", {"session_id": f"{mark('member')}/../\n"}, "sync", "failed"),
        ("session_get", {**session, mark("member"): mark("member")}, "sync", "completed"),
        (mark("operation"), {}, "sync", None),
        ("session_chat", session | said, "async", "queued"),
    ]
    for number, (operation, given, mode, status) in enumerate(steps):
        result = await life.act(operation, given, mode=mode, idempotency_key=f"{mark('key')}-{number}")
        assert result.get("status") == status, (operation, result)
        if mode == "async":
            told = await life.ask("GET", f"/aip/v1/actions/{result['action_id']}/result", params={"wait_ms": "30000"})
            assert told.json()["action_result"]["status"] == "completed"


async def asked(life: Life) -> dict[str, dict[str, Any]]:
    """Ask for what somebody else has to approve."""
    inputs: dict[str, tuple[str, dict[str, Any]]] = {
        "run": (
            "operator",
            {"objective": mark("objective"), "context": [mark("context")], "constraints": {"x": mark("context")}},
        ),
        "job": ("job_create", {"name": mark("jobname"), "schedule": "0 3 * * *", "prompt": mark("jobprompt")}),
        **{name: ("session_delete", {"session_id": name}) for name in (SESSION, "s2", "s3")},
    }
    parked = {
        name: await life.act(operation, given, idempotency_key=f"{mark('key')}-{name}")
        for name, (operation, given) in inputs.items()
    }
    assert {result["status"] for result in parked.values()} == {"pending_approval"}
    return parked


async def nonsense(life: Life) -> None:
    """Requests that are refused, each with markers where a caller can put them."""
    json_type = {"content-type": "application/json"}
    for method, path, members in (
        ("GET", f"/aip/v1/{mark('path')}", {}),
        ("GET", f"/aip/v1/actions/{mark('path')}/events", {"params": {mark("query"): mark("query")}}),
        ("GET", "/aip/v1/approvals", {"params": {"cursor": mark("query"), "status": mark("query")}}),
        ("POST", "/aip/v1/messages", {"content": f'{{"{mark("body")}": ', "headers": json_type}),
        ("POST", "/aip/v1/messages", {"json": {mark("body"): mark("body")}}),
        ("POST", f"/aip/v1/actions/{mark('path')}/cancel", {"json": {"reason": mark("body")}}),
        (mark("query").upper(), "/", {}),
        ("GET", "/aip/v1/me", {"who": "stranger"}),
    ):
        answer = await life.ask(method, path, **members)
        assert 400 <= answer.status_code < 500, (method, path, answer.text)


async def backed_up(life: Life) -> Path:
    """Back the store up by the command and return the copy."""
    copy = life.folder / new_id("backup")
    command = [*AIP_HERMES, "backup", "--config", str(life.folder / "aip-hermes.toml"), str(copy)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert found_in(done.stdout + done.stderr) == set()
    return copy


@pytest.mark.requirement("log:no-payload", "records:text:where", "records:text:delete-erases")
async def test_every_marker_is_where_it_may_be_and_nowhere_else(tmp_path: Path) -> None:
    async with living(tmp_path) as life:
        await turns(life)
        parked = await asked(life)
        waiting = found_in_tables(life.store)
        await life.decide(parked["s2"], "denied", "veto")
        await life.ask(
            "POST", f"/aip/v1/actions/{parked['s3']['action_id']}/cancel", json={"reason": mark("withdrawn")}
        )
        for name in ("run", "job"):
            await life.decide(parked[name], "approved", "reason")
        await nonsense(life)
        copied = await backed_up(life)
        read = {path: found_in((await life.ask("GET", path)).text) for path in READS}
        await life.decide(parked[SESSION], "approved", "reason")
        deleted = (await life.ask("GET", f"/aip/v1/actions/{parked[SESSION]['action_id']}/result")).json()
        await asyncio.wait_for(life.hooks.came.wait(), 30)
    assert deleted["action_result"]["status"] == "completed"
    assert beyond(waiting, ALLOWED) == {}
    assert {column: fields - waiting.get(column, set()) for column, fields in EXPECTED.items() if fields} == {
        column: set() for column in EXPECTED
    }
    # All has ended but one delete that waits: nothing that was submitted is left, in the store or in its copy.
    ended = {**ALLOWED, "actions.parked": {"key", "trace"}}
    assert beyond(found_in_tables(copied), ended) == {}
    assert {"reason", "veto"} <= found_in_tables(copied)["approvals.decision"]
    # The session was deleted: of what was said in it no byte is left, in whatever file.
    gone = {*TURN, "system", "prompt"}
    assert beyond(found_in_tables(life.store), {**ended, "actions.result": ended["actions.result"] - gone}) == {}
    for path in life.store.parent.iterdir():
        assert found_in(path.read_bytes()).isdisjoint(gone | CREDENTIALS | {"sessionkey", "member"}), path.name
    assert {path: fields for path, fields in read.items() if fields} == {}
    assert [request for request in life.hooks.got if found_in(request)] == []
    assert [answer for answer in life.heard if found_in(answer) & (CREDENTIALS | {"sessionkey", "header"})] == []
    assert_a_clean_log(life)


def assert_a_clean_log(life: Life) -> None:
    lines = life.log.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if found_in(line)] == []
    assert len({json.loads(line).get("action_id") for line in lines}) > len(MARKERS) / 2
