"""What `aipctl action cancel` says of each answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from aip_hermes.cli.aipctl.command import aipctl
from tests.support import client_answers as answers
from tests.support.client_stub_server import Answer, running_stub

ACTION = answers.ACTION_ID


def _cancelled(*, uncertain: bool = False) -> dict[str, Any]:
    evidence = {"cancelled": True, "_aip": {"cancel": {"stopped": False, "note": "the turn goes on"}}}
    error = answers.failed("connector.hermes_agent.cancelled", uncertain=uncertain)["action_result"]["error"]
    return answers.action_result("cancelled", output=evidence, error=error)


@pytest.mark.requirement("aipctl:cancel:result", "client:cancel:route")
@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        pytest.param(Answer(body=_cancelled()), 0, "the provider was not stopped: the turn goes on", id="cancelled"),
        pytest.param(Answer(body=_cancelled(uncertain=True)), 4, "the outcome is unknown", id="uncertain"),
        pytest.param(Answer(body=answers.completed({})), 0, "had ended before, as completed", id="late"),
        pytest.param(Answer(body=answers.failed("connector.x")), 0, "had ended before, as failed", id="late failure"),
        pytest.param(
            answers.refused("action.cancel_unsupported", "permanent", 400),
            1,
            "it goes on and can't be stopped",
            id="no",
        ),
        pytest.param(
            answers.refused("resource.not_found", "permanent", 400), 1, "never received, or of another", id="unknown"
        ),
        pytest.param(Answer(fate="cut"), 4, "aipctl action status", id="lost"),
    ],
)
def test_cancelling_tells_what_came_of_it(answer: Answer, code: int, said: str) -> None:
    with running_stub(lambda _: answer) as stub:
        done = CliRunner().invoke(aipctl, ["action", "cancel", stub.url, ACTION, "--reason", "not needed"])
    assert (done.exit_code, len(stub.requests)) == (code, 1)
    assert stub.requests[0].json == {"reason": "not needed"}
    assert said in done.stderr
    if answer.status == 200 and answer.fate == "sent":
        assert json.loads(done.stdout) == answer.body
