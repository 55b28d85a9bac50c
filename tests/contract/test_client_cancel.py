"""Cancelling with the client library: once, and what an answer that does not come means."""

from __future__ import annotations

import pytest

from aip_hermes.client import (
    ClientFailure,
)
from aip_hermes.ids import ActionId
from tests.support import client_answers as answers
from tests.support.client_streams import (
    connected,
)
from tests.support.client_stub_server import Answer, running_stub

ACTION = ActionId("act_1")


@pytest.mark.requirement("client:cancel:route")
@pytest.mark.parametrize(
    ("answer", "code", "uncertain"),
    [
        (Answer(fate="cut"), "client.no_answer", True),
        (Answer(status=502, body=b"<html>"), "client.http_failed", True),
        (Answer(body=b"<html>"), "client.undecodable", True),
        (Answer(status=404, body=b"no"), "client.http_failed", False),
        (answers.refused("action.cancel_unsupported", "permanent", 400), "action.cancel_unsupported", False),
    ],
)
async def test_a_lost_answer_to_a_cancel_is_uncertain(answer: Answer, code: str, uncertain: bool) -> None:
    with running_stub(lambda _: answer) as stub:
        async with connected(stub.url) as connection:
            with pytest.raises(ClientFailure) as caught:
                await connection.cancel(ACTION, "r")
    assert (caught.value.code, caught.value.uncertain) == (code, uncertain)
    assert [(request.target, request.json) for request in stub.requests] == [
        ("/aip/v1/actions/act_1/cancel", {"reason": "r"})
    ]
