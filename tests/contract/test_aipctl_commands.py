"""Every command and option of `aipctl` against a server on a socket: which request it makes, what it prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from aip_hermes import wire
from tests.support import client_answers as answers
from tests.support.client_command import answering_stub, invoke_aipctl
from tests.support.client_stub_server import Answer, Request, StubServer, running_stub

ACTION = answers.ACTION_ID
APPROVAL = answers.APPROVAL_ID


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with answering_stub() as stub:
        yield stub


@pytest.mark.requirement("aipctl:commands:routes")
@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ("manifest fetch URL", "/aip/v1/manifest"),
        ("capability list URL", "/aip/v1/capabilities"),
        ("capability list URL --text T --limit 5", "/aip/v1/capabilities?text=T&limit=5"),
        ("capability list URL --capability-id C --profile P", "/aip/v1/capabilities?capability_id=C&profile=P"),
        ("capability list URL --cursor 7:x --text", None),
        ("action status URL act_1", "/aip/v1/actions/act_1"),
        (
            "action status URL act_1 --include-result --include-receipts --include-chunks --wait-ms 5",
            "/aip/v1/actions/act_1?include_result=true&include_receipts=true&include_chunks=true&wait_ms=5",
        ),
        ("action result URL act_1", "/aip/v1/actions/act_1/result"),
        (
            "action result URL act_1 --wait-ms 5 --include-receipt --include-terminal-events",
            "/aip/v1/actions/act_1/result?wait_ms=5&include_receipt=true&include_terminal_events=true",
        ),
        ("approval records URL", "/aip/v1/approvals"),
        (
            "approval records URL --status pending --approver human:a --requester agent:b --tenant-id t --cursor c",
            "/aip/v1/approvals?status=pending&approver=human%3Aa&requester=agent%3Ab&tenant_id=t&cursor=c",
        ),
        (
            "approval records URL --limit 3 --include-action-status --include-receipts",
            "/aip/v1/approvals?limit=3&include_action_status=true&include_receipts=true",
        ),
        ("approval get URL appr_1", "/aip/v1/approvals/appr_1"),
        (
            "approval get URL appr_1 --include-action-status --include-receipts",
            "/aip/v1/approvals/appr_1?include_action_status=true&include_receipts=true",
        ),
    ],
)
def test_a_reading_command_makes_one_request_and_prints_the_body_object(
    stub: StubServer, arguments: str, target: str | None
) -> None:
    done = invoke_aipctl(*(stub.url if word == "URL" else word for word in arguments.split()))
    if target is None:
        assert (done.exit_code, done.stdout, stub.requests) == (2, "", [])
        return
    assert [(request.method, _parts(request.target)) for request in stub.requests] == [("GET", _parts(target))]
    assert done.exit_code == 0
    assert done.stdout == _printed(answers.read_routes(stub.requests[0]).body)


@pytest.mark.requirement("aipctl:commands:routes")
@pytest.mark.parametrize(
    ("options", "query"),
    [
        (
            "--include-receipts",
            "include_action_status=true&include_receipts=true&include_evidence_payload=true",
        ),
        ("--output json", "include_action_status=true&include_evidence_payload=true"),
    ],
)
def test_showing_an_approval_reads_its_record_and_then_what_it_would_touch(
    stub: StubServer, options: str, query: str
) -> None:
    invoke_aipctl("approval", "show", stub.url, "appr_1", *options.split())
    assert [(request.method, _parts(request.target)) for request in stub.requests] == [
        ("GET", _parts(f"/aip/v1/approvals/appr_1?{query}")),
        ("GET", _parts("/aip/v1/approvals/appr_1/context")),
    ]


def _parts(target: str) -> tuple[str, list[tuple[str, str]]]:
    """Take a target apart; members of a query have no order."""
    split = urlsplit(target)
    return split.path, sorted(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))


def _printed(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.requirement("aipctl:commands:routes")
@pytest.mark.parametrize(
    ("options", "members"),
    [
        ("", {}),
        ("--mode sync", {"mode": "sync"}),
        ("--mode async --idempotency-key k-1", {"mode": "async", "idempotency_key": "k-1"}),
        ("--mode streaming", {"mode": "streaming"}),
        ('--input {"a":[1,null]}', {"input": {"a": [1, None]}}),
        ('--identity {"tenant":{"id":"t"}}', {"identity": {"tenant": {"id": "t"}}}),
        (
            '--approval {"approval_id":"appr_1","decision":"approved",'
            '"approver":{"id":"human:b","kind":"human"},"decided_at":"2030-01-01T00:00:00Z"}',
            {
                "approval": {
                    "approval_id": "appr_1",
                    "decision": "approved",
                    "approver": {"id": "human:b", "kind": "human"},
                    "decided_at": "2030-01-01T00:00:00Z",
                }
            },
        ),
        ("--transaction-mode dry-run", {"transaction": {"mode": "dry_run"}}),
        (
            "--transaction-mode commit --transaction-id txn_1 --plan-id p",
            {"transaction": {"mode": "commit", "transaction_id": "txn_1", "plan_id": "p"}},
        ),
        (
            "--transaction-mode compensate --compensation-for act_9",
            {"transaction": {"mode": "compensate", "compensation_for": "act_9"}},
        ),
    ],
)
def test_action_call_posts_one_action_and_prints_the_whole_envelope(
    stub: StubServer, options: str, members: dict[str, Any]
) -> None:
    done = invoke_aipctl("action", "call", stub.url, "cap:x", "--action-id", ACTION, *options.split())
    [request] = stub.requests
    assert (request.method, request.target) == ("POST", "/aip/v1/messages")
    assert request.headers["content-type"] == "application/json"
    assert request.json["body"] == {"action": {"id": ACTION, "capability_id": "cap:x", "input": {}, **members}}
    assert request.json["from"] == {"id": "agent:getaip:cli", "kind": "agent"}
    assert wire.envelope_violations(request.json) == []
    answered = answers.envelope(answers.completed({"ok": True}), in_response_to=request.json["message_id"])
    assert (done.exit_code, done.stdout, done.stderr) == (0, _printed(answered), "")


@pytest.mark.requirement("aipctl:identity:before-sending", "aipctl:identity:no-invented-key")
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], ["action id: "]),
        (["--generate-key"], ["action id: ", "idempotency key: "]),
        (["--action-id", ACTION, "--generate-key"], ["idempotency key: "]),
        (["--action-id", ACTION, "--idempotency-key", "k"], []),
    ],
)
def test_only_what_was_generated_is_shown_and_it_is_what_was_sent(
    stub: StubServer, options: list[str], shown: list[str]
) -> None:
    done = invoke_aipctl("action", "call", stub.url, "cap:x", *options)
    action = stub.requests[0].json["body"]["action"]
    lines = done.stderr.splitlines()
    assert [line.split(": ")[0] + ": " for line in lines] == shown
    sent = {"action id: ": action["id"], "idempotency key: ": action.get("idempotency_key")}
    assert lines == [name + sent[name] for name in shown]
    assert ("idempotency_key" in action) is bool(options and options != ["--action-id", ACTION])


@pytest.mark.requirement("aipctl:input:strict")
def test_input_comes_from_a_file_with_one_byte_order_mark_and_from_stdin(stub: StubServer, tmp_path: Path) -> None:
    file = tmp_path / "input with space.json"
    file.write_bytes(b'\xef\xbb\xbf{"title": "\xe7\xa5\xa8"}\r\n')
    assert invoke_aipctl("action", "call", stub.url, "cap:x", "--input", f"@{file}").exit_code == 0
    assert (
        invoke_aipctl(
            "action", "call", stub.url, "cap:x", "--input", "-", stdin=b' {"n": 18446744073709551616}'
        ).exit_code
        == 0
    )
    assert [request.json["body"]["action"]["input"] for request in stub.posts] == [{"title": "票"}, {"n": 2**64}]


@pytest.mark.requirement("aipctl:input:strict")
@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"a": 1, "a": 2}', "line 1, column 10"),
        (b'{\n  "a": NaN\n}', "line 2, column 8"),
        (b'{"a": [1,]}', "line 1, column 10"),
        (b'{"a": 1}\n}', "line 2, column 1"),
        (b"{'a': 1}", "line 1, column 2"),
        (b'{"a": "\xff"}', "line 1, column 8"),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"a": 1}', "line 1, column 1"),
        (b'{"a": "\x1b[2J"}', "line 1, column 8"),
    ],
)
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_bad_json_is_refused_with_its_place_and_nothing_is_sent(
    stub: StubServer, tmp_path: Path, content: bytes, place: str, way: str
) -> None:
    file = tmp_path / "input.json"
    file.write_bytes(content)
    argument, stdin = (f"@{file}", b"") if way == "file" else ("-", content)
    done = invoke_aipctl("action", "call", stub.url, "cap:x", "--input", argument, stdin=stdin)
    assert (done.exit_code, done.stdout, stub.requests) == (2, "", [])
    assert place in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.requirement("aipctl:input:strict", "aipctl:commands:routes", "aipctl:exit:codes")
@pytest.mark.parametrize(
    "arguments",
    [
        "action call URL cap:x --input @/no/such/file",
        "action call URL cap:x --input @/",
        "action call URL cap:x --input ''",
        "action call URL cap:x --input null",
        "action call URL cap:x --action-id 1",
        "action call URL cap:x --action-id ''",
        "action call URL cap:x --idempotency-key ''",
        "action call URL cap:x --idempotency-key k\u00e9",
        "action call URL cap:x --idempotency-key k --generate-key",
        "action call URL cap:x --mode later",
        "action call URL cap:x --plan-id p",
        "action call URL cap:x --transaction-mode commit",
        "action call URL cap:x --identity 1",
        "action call URL ''",
        "action call URL",
        "action call URL cap:x --native-signing-seed-file /x",
        "action call '' cap:x",
        "action call ftp://x cap:x",
        "action call http://user:pass@127.0.0.1:1 cap:x",
        "action call http://127.0.0.1:99999 cap:x",
        "action call http://xn--a cap:x --action-id act_1",
        "action status URL 1",
        "action status URL act_1 --wait-ms -1",
        "action stop URL act_1",
        "capability list URL --limit many",
        "capability list URL --signed-native",
        "approval get URL act_1",
        "approval approve URL appr_1",
        "approval approve URL appr_1 --reason ' '",
        "approval decide URL []",
        "approval decide URL {}",
        "manifest fetch",
        "nothing",
        "--native-max-response-bytes 0 manifest fetch URL",
        "--native-principal-id '' manifest fetch URL",
        "--native-tls-ca-file /no/such/file manifest fetch URL",
        "--native-bearer-token a --native-bearer-token-file b manifest fetch URL",
    ],
)
def test_a_wrong_line_exits_2_and_sends_nothing(stub: StubServer, arguments: str) -> None:
    words = [stub.url if word == "URL" else word for word in shlex.split(arguments)]
    done = invoke_aipctl(*words)
    assert (done.exit_code, done.stdout, stub.requests) == (2, "", [])
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("aipctl:options:anywhere", "aipctl:options:environment")
def test_token_and_principal_reach_the_request(stub: StubServer, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("from-the-file\r\n")
    token_file.chmod(0o600)
    call = ("action", "call", stub.url, "cap:x")
    assert invoke_aipctl("--native-bearer-token-file", str(token_file), *call).exit_code == 0
    assert (
        invoke_aipctl(*call, "--native-bearer-token", "from-the-line", "--native-principal-id", "human:a").exit_code
        == 0
    )
    done = invoke_aipctl(*call, env={"GETAIP_NATIVE_BEARER_TOKEN_FILE": str(token_file)})
    assert done.exit_code == 0
    assert invoke_aipctl(*call).exit_code == 0
    assert [request.headers.get("authorization") for request in stub.requests] == [
        "Bearer from-the-file",
        "Bearer from-the-line",
        "Bearer from-the-file",
        None,
    ]
    assert stub.requests[1].json["from"] == {"id": "human:a", "kind": "human"}


def test_a_path_in_the_url_is_replaced(stub: StubServer) -> None:
    assert invoke_aipctl("manifest", "fetch", f"{stub.url}/some/where?x=1").exit_code == 0
    assert stub.requests[0].target == "/aip/v1/manifest"


@pytest.mark.requirement("aipctl:hint:failure", "aipctl:output:neutralised")
def test_a_refusal_lists_the_ids_that_exist_and_neutralises_what_the_server_wrote() -> None:
    ids = ["cap:hermes_agent:primary:session_get", "cap:hermes_agent:second:session_get"]

    def answer(request: Request) -> Answer:
        return answers.refused(
            "resource.not_found", "permanent", 400, "no \x1b[31msuch capability", details={"did_you_mean": ids}
        )

    with running_stub(answer) as stub:
        done = invoke_aipctl("action", "call", stub.url, "cap:hermes_agent::session_get", "--action-id", ACTION)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        r"AIP peer error resource.not_found: no \x1b[31msuch capability (HTTP 400)",
        "  did you mean:",
        *(f"    {name}" for name in ids),
        f"  next: aipctl capability list {stub.url} --text cap:",
    ]


@pytest.mark.requirement("aipctl:hint:failure")
@pytest.mark.parametrize(
    ("command", "refusal", "lines"),
    [
        (
            "action result URL act_1",
            ("action.result_not_ready", "temporary", 503),
            ["AIP HTTP GET failed with HTTP 503: {", "  next: aipctl action status URL act_1"],
        ),
        (
            "manifest fetch URL",
            ("auth.native_http_unauthorized", "auth", 401),
            ["manifest fetch failed with HTTP 401: {", "  next: name the token file"],
        ),
        (
            "approval get URL appr_1",
            ("approval.not_found", "permanent", 400),
            ["AIP HTTP GET failed with HTTP 400: {", "  next: aipctl approval records URL --status pending"],
        ),
    ],
)
def test_a_refused_read_keeps_the_published_text_and_adds_the_next_step(
    command: str, refusal: tuple[str, str, int], lines: list[str]
) -> None:
    code, category, status = refusal
    with running_stub(lambda _: answers.refused(code, category, status)) as stub:
        done = invoke_aipctl(*(stub.url if word == "URL" else word for word in command.split()))
        shown = done.stderr.splitlines()
        assert (done.exit_code, done.stdout, len(shown)) == (1, "", len(lines))
        for line, expected in zip(shown, lines, strict=True):
            assert line.startswith(expected.replace("URL", stub.url))
    assert code in shown[0]
