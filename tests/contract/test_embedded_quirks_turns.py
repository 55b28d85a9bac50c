"""Quirks of release 0.19.0 in turns: compressed rows, turns at once, failures that look like answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded import ModelFailed, SessionDB
from aip_hermes.embedded.session_db import TurnGround
from tests.support.embedded_endpoint import GatedModel, RecordingModel, Running, code_of, endpoint


class FailingAs(RecordingModel):
    """Fails with one HTTP status, or without any."""

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status

    async def before_reply(self) -> None:
        raise ModelFailed("the model did not answer", status=self.status)


class BlindStore(SessionDB):
    """Reads no transcript for a model."""

    async def get_messages_as_conversation(
        self, session_id: str, *arguments: Any, **options: Any
    ) -> list[dict[str, Any]]:
        raise StoreUnavailable("the store is not available: disk I/O error", kind="io")


class ForgetfulStore(SessionDB):
    """Stores no reply; with `wholly`, no message at all."""

    wholly = False

    async def record_reply(self, session_id: str, content: str, **options: Any) -> int:
        raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")

    async def begin_turn(self, ground: TurnGround, question: Mapping[str, Any], **options: Any) -> int:
        if self.wholly:
            raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")
        return await super().begin_turn(ground, question, **options)


async def compressed(hermes: Running) -> None:
    """Row c1, ended by a compression, and its continuation c2."""
    await hermes.create("c1")
    await hermes.db.append_message("c1", "user", "old")
    await hermes.db.create_session("c2", "api_server", parent_session_id="c1")
    await hermes.db.append_message("c2", "assistant", "summary")
    await hermes.db.end_session("c1", "compression")


@pytest.mark.requirement("embedded:quirk:chat-ignores-continuation")
async def test_with_the_quirk_a_chat_on_a_compressed_id_runs_and_stays_in_the_ended_row(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model, quirks=["chat-ignores-continuation"]) as hermes:
        await compressed(hermes)
        answer = await hermes.chat("c1", "hello")

        assert answer.json()["session_id"] == answer.headers["x-hermes-session-id"] == "c1"
        assert [m["content"] for m in model.requests[0].messages] == ["old\n\nhello"]
        assert [row["content"] for row in await hermes.db.get_messages("c1")] == ["old", "hello", "Reply 1"]
        resolved, rows = await hermes.messages("c1")
        assert (resolved, [row["content"] for row in rows]) == ("c2", ["summary"])
        assert (await hermes.session("c1"))["end_reason"] == "compression"


@pytest.mark.requirement("embedded:quirk:turns-not-serialised")
async def test_with_the_quirk_two_chats_run_at_once_and_their_rows_interleave(tmp_path: Path) -> None:
    model = GatedModel()
    async with endpoint(tmp_path, model=model, quirks=["turns-not-serialised"]) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        turns = []
        for text in ("one", "two"):
            model.asked.clear()
            turns.append(asyncio.create_task(hermes.chat("s", text)))
            await model.asked.wait()
        assert code_of(await hermes.client.delete("/api/sessions/s")) == (409, "turn_in_progress")
        model.gate.set()
        answers = await asyncio.gather(*turns)
        _, rows = await hermes.messages("s")

        assert [answer.status_code for answer in answers] == [200, 200]
        assert [row["role"] for row in rows] == ["user", "user", "assistant", "assistant"]
        assert [m["content"] for m in model.requests[0].messages] == ["one"]
        assert (await hermes.client.delete("/api/sessions/s")).status_code == 200


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (503, "API call failed after"),
        (429, "API call failed after"),
        (None, "API call failed after"),
        (401, "HTTP 401:"),
    ],
)
@pytest.mark.requirement("embedded:quirk:answers-on-failure")
async def test_with_the_quirk_a_failed_model_is_an_answer_without_usage(
    tmp_path: Path, status: int | None, said: str
) -> None:
    async with endpoint(tmp_path, model=FailingAs(status), quirks=["answers-on-failure"]) as hermes:
        await hermes.create("s")
        answer = await hermes.chat("s", "one")
        stream = await hermes.client.post("/api/sessions/s/chat/stream", json={"message": "two"})
        _, rows = await hermes.messages("s")

        assert answer.status_code == 200
        assert answer.json()["message"]["content"].startswith(said)
        assert answer.json()["usage"] == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        assert [(row["role"], row["content"]) for row in rows] == [("user", "one"), ("user", "two")]
        events = [line.removeprefix("event: ") for line in stream.text.splitlines() if line.startswith("event: ")]
        assert events == ["run.started", "message.started", "assistant.completed", "run.completed", "done"]
        told = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")]
        assert (told[3]["messages"], told[3]["completed"]) == ([], True)


@pytest.mark.requirement("embedded:quirk:answers-on-failure")
async def test_with_the_quirk_a_turn_on_an_unreadable_history_runs_on_none(tmp_path: Path) -> None:
    model = RecordingModel()
    store = BlindStore(tmp_path / "hermes.db")
    async with endpoint(tmp_path, model=model, db=store, quirks=["answers-on-failure"]) as hermes:
        await hermes.create("s")
        answers = [await hermes.chat("s", text) for text in ("one", "two")]

        assert [answer.status_code for answer in answers] == [200, 200]
        assert [[m["content"] for m in request.messages] for request in model.requests] == [["one"], ["two"]]
        assert len((await hermes.messages("s"))[1]) == 4


@pytest.mark.parametrize(("wholly", "stored"), [(False, ["one"]), (True, [])])
@pytest.mark.requirement("embedded:quirk:answers-on-failure")
async def test_with_the_quirk_a_turn_that_is_not_stored_is_answered(
    tmp_path: Path, wholly: bool, stored: list[str]
) -> None:
    store = ForgetfulStore(tmp_path / "hermes.db")
    store.wholly = wholly
    async with endpoint(tmp_path, model=RecordingModel(), db=store, quirks=["answers-on-failure"]) as hermes:
        await hermes.create("s")
        answer = await hermes.chat("s", "one")

        assert (answer.status_code, answer.json()["message"]["content"]) == (200, "Reply 1")
        assert [row["content"] for row in (await hermes.messages("s"))[1]] == stored


@pytest.mark.requirement("embedded:quirk:answers-on-failure")
async def test_with_the_quirk_a_session_that_is_not_there_is_still_404(tmp_path: Path) -> None:
    async with endpoint(tmp_path, quirks=["answers-on-failure"]) as hermes:
        assert code_of(await hermes.chat("nobody")) == (404, "session_not_found")
