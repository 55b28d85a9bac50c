"""Exit codes of `aipctl action call`: one for each way an action can end (design D1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from aip_hermes.cli.aipctl.command import aipctl
from tests.support import client_answers as answers
from tests.support.client_stub_server import Answer, Request, running_stub

ACTION = answers.ACTION_ID


def _reply(body: dict[str, Any]) -> Callable[[Request], Answer]:
    return lambda request: answers.reply_with(body, request)


def _is_json_or_nothing(stdout: str) -> bool:
    return stdout == "" or isinstance(json.loads(stdout), dict)


_REFUSED = answers.refused("auth.native_http_unauthorized", "auth", 401, "invalid bearer token")
_ACK = {"ack": {"action_id": ACTION, "status": "queued"}}


@pytest.mark.requirement("aipctl:exit:codes", "aipctl:output:json-or-nothing")
@pytest.mark.parametrize(
    ("answer", "plain", "on_status"),
    [
        pytest.param(_reply(answers.completed({})), 0, 0, id="completed"),
        pytest.param(_reply(answers.failed("action.input_schema_invalid")), 0, 3, id="validation"),
        pytest.param(_reply(answers.failed("connector.hermes_agent.not_found")), 1, 1, id="connector"),
        pytest.param(_reply(answers.failed("connector.hermes_agent.x", uncertain=True)), 4, 4, id="uncertain"),
        pytest.param(_reply(answers.pending()), 0, 5, id="pending"),
        pytest.param(_reply(_ACK), 0, 5, id="queued"),
        pytest.param(_reply(answers.action_result("cancelled")), 0, 6, id="cancelled"),
        pytest.param(lambda _: _REFUSED, 1, 1, id="refused"),
        pytest.param(lambda _: Answer(status=502, body=b"<html>"), 4, 4, id="html 502"),
        pytest.param(lambda _: Answer(status=404, body=b"no"), 1, 1, id="wrong server"),
        pytest.param(lambda _: Answer(status=302, headers={"Location": "http://127.0.0.1:9/"}), 1, 1, id="redirect"),
        pytest.param(lambda _: Answer(body=b"<html>"), 4, 4, id="html 200"),
        pytest.param(lambda _: Answer(fate="cut"), 4, 4, id="lost answer"),
    ],
)
def test_each_outcome_has_its_exit_code(answer: Callable[[Request], Answer], plain: int, on_status: int) -> None:
    for options, code in (((), plain), (("--fail-on-status",), on_status)):
        with running_stub(answer) as stub:
            call = ["action", "call", stub.url, "cap:x", "--action-id", ACTION, *options]
            done = CliRunner().invoke(aipctl, call)
        assert done.exit_code == code
        assert len(stub.posts) == 1
        assert _is_json_or_nothing(done.stdout)
        assert "Traceback" not in done.stderr
        if code == 4:
            assert f"aipctl action status {stub.url} {ACTION}" in done.stderr
