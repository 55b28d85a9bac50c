"""Commands about AIP sessions, transactions and resources: one request each, and what a server of ours answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_command import aipctl_process, invoke_aipctl
from tests.support.client_stub_server import Answer, running_stub
from tests.support.server_serving import serving, written_settings

RESUMED = {"resume_token": None, "last_event_cursor": None}
ROWS: list[tuple[str, str, str, Any]] = [
    ("session list URL", "GET /aip/v1/sessions", "session_list", None),
    (
        "session list URL --principal-id agent:a --status active --cursor offset:3 --limit 3",
        "GET /aip/v1/sessions?principal_id=agent%3Aa&status=active&cursor=offset%3A3&limit=3",
        "session_list",
        None,
    ),
    ("session get URL sess_1", "GET /aip/v1/sessions/sess_1", "session_view", None),
    ("session close URL sess_1", "POST /aip/v1/sessions/sess_1/close", "session_view", {"reason": None}),
    ("session close URL sess_1 --reason x", "POST /aip/v1/sessions/sess_1/close", "session_view", {"reason": "x"}),
    ("session resume URL sess_1", "POST /aip/v1/sessions/sess_1/resume", "session_resume", RESUMED),
    (
        "session resume URL sess_1 --resume-token t --last-event-cursor c",
        "POST /aip/v1/sessions/sess_1/resume",
        "session_resume",
        {"resume_token": "t", "last_event_cursor": "c"},
    ),
    ("transaction get URL --transaction-id t1", "GET /aip/v1/transactions/t1", "transaction_view", None),
    ("transaction get URL --plan-id p1", "GET /aip/v1/transactions/by-plan/p1", "transaction_view", None),
    (
        "transaction get URL --action-id act_1 --include-result --include-receipts",
        "GET /aip/v1/transactions/by-action/act_1?include_result=true&include_receipts=true",
        "transaction_view",
        None,
    ),
    (
        "resource list URL --capability-id cap:x --kind k",
        "GET /aip/v1/resources?capability_id=cap%3Ax&kind=k",
        "resource_list",
        None,
    ),
    ("resource read URL a/b", "GET /aip/v1/resources/a%2Fb", "resource_read_result", None),
]


@pytest.mark.requirement("aipctl:other-records")
@pytest.mark.parametrize(("arguments", "target", "member", "body"), ROWS, ids=[row[0] for row in ROWS])
def test_each_command_makes_one_request_and_prints_the_body_object(
    arguments: str, target: str, member: str, body: Any
) -> None:
    answered = {member: {"x": 1}}
    with running_stub(lambda _: Answer(body=answered)) as stub:
        done = invoke_aipctl(*(stub.url if word == "URL" else word for word in arguments.split()))
    [request] = stub.requests
    assert f"{request.method} {request.target}" == target
    assert (request.json if request.body else None) == body
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == answered


@pytest.mark.requirement("aipctl:other-records")
@pytest.mark.parametrize(
    "arguments",
    [
        "transaction get URL",
        "transaction get URL --plan-id p --transaction-id t",
        "session get URL case-1",
        "session list URL --limit 0",
    ],
)
def test_a_wrong_use_sends_nothing(arguments: str) -> None:
    with running_stub(lambda _: Answer()) as stub:
        done = invoke_aipctl(*(stub.url if word == "URL" else word for word in arguments.split()))
        assert stub.requests == []
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.requirement("aipctl:other-records")
async def test_our_server_has_none_of_them_and_says_so(tmp_path: Path) -> None:
    settings = written_settings(tmp_path)
    text = settings.path.read_text(encoding="utf-8").replace('"audit:read"]\ninvoke = ["cap', '"*"]\ninvoke = ["cap')
    settings.path.write_text(text, encoding="utf-8")
    environment = {"GETAIP_NATIVE_BEARER_TOKEN": "requester-0123456789"}
    told: dict[str, tuple[int, str, str]] = {}
    async with serving(type(settings).load(settings.path)) as (client, _):
        for words in ("session list URL", "session get URL sess_1", "session close URL sess_1", "resource list URL"):
            url = str(client.base_url)
            async with aipctl_process(*(url if w == "URL" else w for w in words.split()), env=environment) as process:
                out, err = await process.communicate()
            told[words] = (process.returncode or 0, out.decode(), err.decode())
    assert json.loads(told["session list URL"][1]) == {"session_list": {"sessions": []}}
    assert json.loads(told["resource list URL"][1]) == {"resource_list": {"resources": []}}
    for words in ("session get URL sess_1", "session close URL sess_1"):
        code, printed, said = told[words]
        assert (code, printed) == (1, "")
        assert "session.not_found" in said
