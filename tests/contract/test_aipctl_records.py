"""`aipctl` about records: which request each command makes, and what it is worth on a real server."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_command import aipctl_process, invoke_aipctl
from tests.support.client_streams import TOKEN
from tests.support.client_stub_server import Answer, Request, running_stub
from tests.support.runtime_connector import ScriptedConnector, capability
from tests.support.server_streams import streaming_server

ENV = {"GETAIP_NATIVE_BEARER_TOKEN": TOKEN}
CHAIN = {"receipt_chain": {"chain_id": "approval:appr_1", "receipts": []}}
PAGES: dict[str, Any] = {
    "/aip/v1/actions": {"action_list": {"actions": [], "total_size": 0}},
    "/aip/v1/events": {"event_stream": {"events": [], "next_cursor": "evt_cursor_0"}},
    "/aip/v1/receipts/approval%3Aappr_1": CHAIN,
    "/aip/v1/receipts/by-receipt/rcpt_1": CHAIN,
    "/aip/v1/audit/events": {"audit_query_result": {"events": []}},
}


def _page(request: Request) -> Answer:
    return Answer(body=PAGES[request.path])


@pytest.mark.requirement("aipctl:records:routes")
@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ("action list URL", "/aip/v1/actions"),
        (
            "action list URL --state failed --outcome uncertain --capability-id cap:x --endpoint primary",
            "/aip/v1/actions?state=failed&outcome=uncertain&capability_id=cap%3Ax&endpoint=primary",
        ),
        (
            "action list URL --session-id sess_1 --principal-id agent:a --approval-id appr_1 --transaction-id t",
            "/aip/v1/actions?session_id=sess_1&principal_id=agent%3Aa&approval_id=appr_1&transaction_id=t",
        ),
        (
            "action list URL --since 2030-01-01T00:00:00+01:00 --until 2031-01-01T00:00:00Z",
            "/aip/v1/actions?since=2030-01-01T00%3A00%3A00%2B01%3A00&until=2031-01-01T00%3A00%3A00Z",
        ),
        (
            "action list URL --cursor offset:3 --limit 3 --include-results --include-receipts",
            "/aip/v1/actions?cursor=offset%3A3&limit=3&include_results=true&include_receipts=true",
        ),
        ("events list URL", "/aip/v1/events"),
        (
            "events list URL --cursor evt_cursor_7 --limit 2 --kind a.b --kind c.d",
            "/aip/v1/events?cursor=evt_cursor_7&limit=2&kinds=a.b%2Cc.d",
        ),
        ("receipt get URL --chain-id approval:appr_1", "/aip/v1/receipts/approval%3Aappr_1"),
        ("receipt get URL --receipt-id rcpt_1", "/aip/v1/receipts/by-receipt/rcpt_1"),
        ("audit events URL", "/aip/v1/audit/events"),
        (
            "audit events URL --action-id act_1 --session-id sess_1 --principal-id human:a --tenant-id t",
            "/aip/v1/audit/events?action_id=act_1&session_id=sess_1&principal_id=human%3Aa&tenant_id=t",
        ),
        (
            "audit events URL --transaction-id t --from 2030-01-01T00:00:00Z --to 2031-01-01T00:00:00Z",
            "/aip/v1/audit/events?transaction_id=t&from=2030-01-01T00%3A00%3A00Z&to=2031-01-01T00%3A00%3A00Z",
        ),
        (
            "audit events URL --cursor offset:9 --limit 9 --include-receipts --export",
            "/aip/v1/audit/events?cursor=offset%3A9&limit=9&include_receipts=true&export=true",
        ),
        ("receipt get URL", None),
        ("receipt get URL --chain-id approval:appr_1 --receipt-id rcpt_1", None),
        ("receipt get URL --receipt-id other_1", None),
        ("action list URL --state lost", None),
        ("action list URL --limit 0", None),
        ("audit events URL --from", None),
    ],
)
def test_a_command_about_records_makes_one_request_and_prints_the_body_object(
    arguments: str, target: str | None
) -> None:
    with running_stub(_page) as stub:
        done = invoke_aipctl(*(stub.url if word == "URL" else word for word in arguments.split()))
    if target is None:
        assert (done.exit_code, done.stdout, stub.requests) == (2, "", [])
        return
    [request] = stub.requests
    assert (request.method, request.target.replace("%2E", ".")) == ("GET", target)
    printed = json.dumps(PAGES[request.path], indent=2) + "\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.requirement("aipctl:records:more")
@pytest.mark.parametrize(
    ("command", "body"),
    [
        ("action list", {"action_list": {"actions": [], "total_size": 7, "cursor": "offset:1 \x1b[2J"}}),
        ("audit events", {"audit_query_result": {"events": [], "cursor": "offset:1 \x1b[2J"}}),
    ],
)
def test_a_page_with_a_successor_says_so_and_shows_no_control_character(command: str, body: dict[str, Any]) -> None:
    with running_stub(lambda _: Answer(body=body)) as stub:
        done = invoke_aipctl(*command.split(), stub.url)
    assert (done.exit_code, json.loads(done.stdout)) == (0, body)
    assert "--cursor 'offset:1 \\x1b[2J'" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """Serve tenant `local`, of which one action has completed and one waits for a decision."""
    connector = ScriptedConnector(tenant="local")
    async with asyncio.timeout(60), streaming_server(tmp_path, connector) as client:
        yield str(client.base_url)


async def _aipctl(*arguments: str) -> tuple[int | None, Any, str]:
    """Run the command to its end; return exit code, document and talk."""
    async with aipctl_process(*arguments, env=ENV) as process:
        stdout, stderr = await process.communicate()
        return process.returncode, json.loads(stdout) if stdout else None, stderr.decode()


async def _talk(url: str, name: str) -> None:
    given = json.dumps({"session_id": "s", "message": "hi"})
    call = ["action", "call", url, capability("session_chat"), "--input", given, "--action-id", f"act_{name}"]
    assert (await _aipctl(*call))[0] == 0


async def _asked(url: str) -> str:
    """Submit a delete and return the approval that it waits for."""
    call = ["action", "call", url, capability("session_delete"), "--input", '{"session_id": "s"}']
    code, reply, _ = await _aipctl(*call, "--action-id", "act_d", "--idempotency-key", "d")
    assert code == 0
    return str(reply["body"]["action_result"]["output"]["approval_id"])


@pytest.mark.requirement("aipctl:records:server")
async def test_what_a_server_recorded_is_listed_and_what_it_refuses_is_said(url: str) -> None:
    await _talk(url, "a")
    await _talk(url, "b")
    code, page, said = await _aipctl("action", "list", url, "--state", "completed", "--limit", "1")
    assert code == 0
    assert [each["action_id"] for each in page["action_list"]["actions"]] == ["act_a"]
    cursor = page["action_list"]["cursor"]
    assert f"--cursor {shlex.quote(cursor)}" in said
    _, page, said = await _aipctl("action", "list", url, "--state", "completed", "--limit", "1", "--cursor", cursor)
    assert ([each["action_id"] for each in page["action_list"]["actions"]], said) == (["act_b"], "")
    _, page, _ = await _aipctl("audit", "events", url, "--action-id", "act_b")
    assert [each["id"] for each in page["audit_query_result"]["events"]] == ["audit:action:local:act_b:result"]
    code, page, said = await _aipctl("audit", "events", url, "--export")
    assert (code, page, "audit.not_authorized" in said, "next: " in said) == (1, None, True, True)


@pytest.mark.requirement("aipctl:events:follow")
async def test_the_log_is_read_and_followed_to_an_interruption(url: str) -> None:
    await _talk(url, "a")
    kind = ("--kind", "aip.action.result")
    code, page, _ = await _aipctl("events", "list", url, *kind)
    [first] = page["event_stream"]["events"]
    assert (code, first["action_id"]) == (0, "act_a")

    async with aipctl_process("events", "list", url, "--follow", *kind, env=ENV) as process:
        assert process.stdout is not None
        seen: list[Any] = []
        async for line in process.stdout:
            seen.append(json.loads(line))
            if seen[-1].get("event", {}).get("action_id") == "act_a":
                await _talk(url, "b")
            if "next_cursor" in seen[-1] and any(each.get("event", {}).get("action_id") == "act_b" for each in seen):
                break
        process.send_signal(2)
        _, stderr = await process.communicate()
    followed = [each["event"]["action_id"] for each in seen if "event" in each]
    go_on = f"aipctl events list {url} --kind aip.action.result --follow --cursor {seen[-1]['next_cursor']}"
    assert (process.returncode, followed) == (130, ["act_a", "act_b"])
    assert go_on in stderr.decode()

    code, page, _ = await _aipctl("events", "list", url, *kind, "--cursor", seen[-1]["next_cursor"])
    assert (code, page["event_stream"]["events"]) == (0, [])


@pytest.mark.requirement("aipctl:receipt:verify", "aipctl:records:server")
async def test_a_chain_that_was_read_holds_as_it_was_printed(url: str, tmp_path: Path) -> None:
    approval_id = await _asked(url)
    code, chain, _ = await _aipctl("receipt", "get", url, "--chain-id", f"approval:{approval_id}")
    assert code == 0
    last = chain["receipt_chain"]["receipts"][-1]
    assert (await _aipctl("receipt", "get", url, "--receipt-id", last["id"]))[1] == chain
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(chain))
    code, verified, said = await _aipctl("receipt", "verify", str(path), "--holds-hash", last["hash"])
    assert (code, said) == (0, "")
    assert verified == {
        "chain_id": f"approval:{approval_id}",
        "valid": True,
        "receipts": len(chain["receipt_chain"]["receipts"]),
        "last_hash": last["hash"],
        "root_hash": chain["receipt_chain"]["root_hash"],
    }
    code, nothing, said = await _aipctl("receipt", "get", url, "--chain-id", "approval:appr_other")
    assert (code, nothing, "receipt.not_found" in said) == (1, None, True)


@pytest.mark.requirement("aipctl:manifest:validate", "aipctl:records:server")
async def test_what_the_server_publishes_is_a_valid_manifest(url: str, tmp_path: Path) -> None:
    _, fetched, _ = await _aipctl("manifest", "fetch", url)
    assert len(fetched["capabilities"]) > 1
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(fetched))
    done = invoke_aipctl("manifest", "validate", str(path))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "manifest valid\n", "")
