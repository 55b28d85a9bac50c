"""The agent's steps: tools that are broken, calls that a crash left open, models that never stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.embedded import ModelReply, ModelRequest, Pieces
from aip_hermes.embedded.agent import ToolCall
from aip_hermes.embedded.session_db import Usage
from tests.support.embedded_endpoint import RecordingModel, code_of, endpoint

CALL = ToolCall(id="c1", name="record_command", arguments='{"command": "ls"}')


class CallingModel(RecordingModel):
    """Calls its tools as long as there are any, then says so."""

    def __init__(self, *calls: ToolCall, for_ever: bool = False) -> None:
        super().__init__()
        self._calls = list(calls)
        self._for_ever = for_ever

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        usage = Usage(input_tokens=10, output_tokens=3)
        if not self._calls:
            yield "Done."
            yield ModelReply(text="Done.", usage=usage)
            return
        yield "Looking."
        call = self._calls[0] if self._for_ever else self._calls.pop(0)
        yield ModelReply(text="Looking.", tool_calls=(call,), finish_reason="tool_calls", usage=usage)


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (ToolCall(id="c", name="terminal", arguments="{}"), "Unknown tool: terminal"),
        (ToolCall(id="c", name="record_command", arguments="{notjson"), "The arguments are"),
        (ToolCall(id="c", name="record_command", arguments="[1]"), "The arguments are"),
        (ToolCall(id="c", name="record_command", arguments='{"command": 5}'), "The arguments are"),
        (ToolCall(id="c", name="record_command", arguments='{"command": " "}'), "The arguments are"),
        (ToolCall(id="c", name="record_command", arguments="[" * 100_000), "The arguments are"),
    ],
    ids=lambda value: getattr(value, "arguments", "")[:20] or None,
)
@pytest.mark.requirement("embedded:agent:broken-call")
async def test_a_broken_call_is_a_result_and_the_turn_goes_on(tmp_path: Path, call: ToolCall, result: str) -> None:
    model = CallingModel(call)
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s")
        answer = await hermes.chat("s")
        _, rows = await hermes.messages("s")

        assert (answer.status_code, answer.json()["message"]["content"]) == (200, "Done.")
        assert answer.json()["usage"]["total_tokens"] == 26
        assert result in rows[2]["content"]
        assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "tool"]


@pytest.mark.requirement("embedded:agent:open-call")
async def test_a_call_without_a_result_gets_one_in_the_request_only(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s")
        await hermes.db.append_message("s", "user", "before")
        call = {"id": "c1", "call_id": "c1", "type": "function", "function": {"name": "n", "arguments": "{}"}}
        await hermes.db.append_message("s", "assistant", "", tool_calls=[call, {**call, "id": "c2", "call_id": "c2"}])
        await hermes.db.append_message("s", "tool", "r", tool_call_id="c2")
        await hermes.chat("s", "after")
        _, rows = await hermes.messages("s")

        read = [(m["role"], m.get("tool_call_id")) for m in model.requests[0].messages]
        assert read == [("user", None), ("assistant", None), ("tool", "c2"), ("tool", "c1"), ("user", None)]
        assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.requirement("embedded:agent:endless")
async def test_a_model_that_never_stops_calling_fails(tmp_path: Path) -> None:
    model = CallingModel(CALL, for_ever=True)
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s")
        assert code_of(await hermes.chat("s")) == (502, "model_failed")
        assert len(model.requests) == 30
