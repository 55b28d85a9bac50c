"""Turns: what reaches the model, what is stored, what each failure leaves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded import SessionDB
from tests.support.embedded_endpoint import FailingModel, GatedModel, RecordingModel, code_of, endpoint, served

PICTURE = "data:image/png;base64,iVBORw0KGgo="


class BlindStore(SessionDB):
    """Can't read a transcript for a model while `blind`."""

    blind = True

    async def get_messages_as_conversation(
        self, session_id: str, *arguments: Any, **options: Any
    ) -> list[dict[str, Any]]:
        if self.blind:
            raise StoreUnavailable("the store is not available: disk I/O error", kind="io")
        return await super().get_messages_as_conversation(session_id, *arguments, **options)


class ForgetfulStore(SessionDB):
    """Can't store a reply."""

    async def record_reply(self, session_id: str, content: str, **options: Any) -> int:
        raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")


@pytest.mark.requirement("embedded:turn:answer", "embedded:turn:rows")
async def test_a_turn_answers_and_stores_both_rows(tmp_path: Path) -> None:
    async with endpoint(tmp_path, model=RecordingModel()) as hermes:
        await hermes.create("case-1", model="label")
        answer = await hermes.chat("case-1", "What is verified?")
        resolved, rows = await hermes.messages("case-1")
        row = await hermes.session("case-1")

        assert (answer.status_code, answer.headers["x-hermes-session-id"]) == (200, "case-1")
        assert answer.json() == {
            "object": "hermes.session.chat.completion",
            "session_id": "case-1",
            "message": {"role": "assistant", "content": "Reply 1"},
            "usage": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
        }
        assert resolved == "case-1"
        user, assistant = rows
        assert (user["role"], user["content"], user["finish_reason"]) == ("user", "What is verified?", None)
        assert (assistant["role"], assistant["content"]) == ("assistant", "Reply 1")
        assert (assistant["finish_reason"], assistant["token_count"]) == ("stop", 3)
        assert assistant["id"] > user["id"]
        assert (row["message_count"], row["input_tokens"], row["output_tokens"], row["api_call_count"]) == (2, 10, 3, 1)
        assert row["model"] == "label"


@pytest.mark.requirement("embedded:turn:history", "embedded:create:prompt")
async def test_the_model_reads_history_message_and_system_message_but_no_stored_prompt(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s", system_prompt="STORED")
        await hermes.chat("s", "one", system_message="Briefly.")
        await hermes.client.post("/api/sessions/s/chat", json={"input": "two", "instructions": "Slowly."})
        await hermes.chat("s", "three")
        _, rows = await hermes.messages("s")

        assert [request.system for request in model.requests] == ["Briefly.", "Slowly.", None]
        assert [(m["role"], m["content"]) for m in model.requests[2].messages] == [
            ("user", "one"), ("assistant", "Reply 1"), ("user", "two"), ("assistant", "Reply 2"), ("user", "three")
        ]  # fmt: skip
        assert len(rows) == 6
        assert "STORED" not in repr(model.requests)


@pytest.mark.requirement("embedded:turn:order")
async def test_parallel_turns_of_one_session_follow_each_other(tmp_path: Path) -> None:
    model = GatedModel()
    async with endpoint(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        await hermes.create("t")
        turns = [asyncio.create_task(hermes.chat("s", f"m{n}")) for n in range(3)]
        await model.asked.wait()
        assert len(model.requests) == 1
        # Another session is not kept waiting.
        model.asked.clear()
        other = asyncio.create_task(hermes.chat("t", "elsewhere"))
        await model.asked.wait()
        model.gate.set()
        answers = await asyncio.gather(*turns, other)
        _, rows = await hermes.messages("s")

        assert [answer.status_code for answer in answers] == [200] * 4
        seen = [len(r.messages) - 1 for r in model.requests if r.messages[-1]["content"] != "elsewhere"]
        assert seen == [0, 2, 4]
        assert [row["role"] for row in rows] == ["user", "assistant"] * 3
        assert {row["content"] for row in rows[::2]} == {"m0", "m1", "m2"}


@pytest.mark.requirement("embedded:turn:tip")
async def test_a_turn_on_a_compressed_id_runs_on_its_tip(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("c1")
        await hermes.db.append_message("c1", "user", "old")
        await hermes.db.create_session("c2", "api_server", parent_session_id="c1")
        await hermes.db.append_message("c2", "assistant", "summary")
        await hermes.db.end_session("c1", "compression")

        answer = await hermes.chat("c1", "hello")

        assert answer.json()["session_id"] == answer.headers["x-hermes-session-id"] == "c2"
        assert [m["content"] for m in model.requests[0].messages] == ["summary", "hello"]
        for asked in ("c1", "c2"):
            resolved, rows = await hermes.messages(asked)
            assert (resolved, [row["content"] for row in rows]) == ("c2", ["summary", "hello", "Reply 1"])


@pytest.mark.requirement("embedded:turn:tip", "embedded:turn:order")
async def test_turns_on_root_and_tip_share_one_order(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("c1")
        await hermes.db.create_session("c2", "api_server", parent_session_id="c1")
        await hermes.db.end_session("c1", "compression")
        await asyncio.gather(*(hermes.chat(("c1", "c2")[n % 2], f"m{n}") for n in range(6)))
        _, rows = await hermes.messages("c2")

        assert [row["role"] for row in rows] == ["user", "assistant"] * 6
        assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7, 9, 11]


@pytest.mark.requirement("embedded:turn:closed")
async def test_a_closed_row_takes_turns_and_stays_closed(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        closed = (await hermes.client.patch("/api/sessions/s", json={"end_reason": "done"})).json()["session"]
        assert (await hermes.chat("s")).status_code == 200
        await hermes.db.end_session("s", "again")
        row = await hermes.session("s")

        assert (row["end_reason"], row["ended_at"], row["message_count"]) == ("done", closed["ended_at"], 2)


@pytest.mark.requirement("embedded:turn:model-failed")
async def test_a_failed_model_is_502_and_the_next_turn_carries_the_message_on(tmp_path: Path) -> None:
    model = FailingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s")
        failed = await hermes.chat("s", "one")
        row = await hermes.session("s")
        _, rows = await hermes.messages("s")
        assert code_of(failed) == (502, "model_failed")
        assert [(r["role"], r["content"]) for r in rows] == [("user", "one")]
        assert (row["message_count"], row["output_tokens"]) == (1, 0)

        model.failing = False
        assert (await hermes.chat("s", "two")).status_code == 200
        assert [m["content"] for m in model.requests[1].messages] == ["one\n\ntwo"]
        _, rows = await hermes.messages("s")
        assert [r["content"] for r in rows] == ["one", "two", "Reply 2"]


@pytest.mark.requirement("embedded:turn:history-unreadable")
async def test_an_unreadable_history_is_503_and_no_turn(tmp_path: Path) -> None:
    model = RecordingModel()
    store = BlindStore(tmp_path / "hermes.db")
    async with endpoint(tmp_path, model=model, db=store) as hermes:
        await hermes.create("s")
        assert code_of(await hermes.chat("s")) == (503, "session_db_unavailable")
        assert model.requests == []
        assert (await hermes.messages("s"))[1] == []

        store.blind = False
        assert (await hermes.chat("s")).status_code == 200


@pytest.mark.requirement("embedded:turn:reply-not-stored")
async def test_a_reply_that_could_not_be_stored_is_500_with_the_user_row(tmp_path: Path) -> None:
    async with endpoint(tmp_path, db=ForgetfulStore(tmp_path / "hermes.db")) as hermes:
        await hermes.create("s")
        assert code_of(await hermes.chat("s", "one")) == (500, "reply_not_stored")
        assert [row["content"] for row in (await hermes.messages("s"))[1]] == ["one"]


@pytest.mark.requirement("embedded:delete:during-turn")
async def test_a_delete_during_a_turn_is_refused_and_nothing_comes_back_afterwards(tmp_path: Path) -> None:
    model = GatedModel()
    async with endpoint(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("d1")
        running = asyncio.create_task(hermes.chat("d1", "one"))
        await model.asked.wait()
        waiting = asyncio.create_task(hermes.chat("d1", "two"))
        await asyncio.sleep(0)

        assert code_of(await hermes.client.delete("/api/sessions/d1")) == (409, "turn_in_progress")
        assert (await hermes.session("d1"))["message_count"] == 1
        model.gate.set()
        assert [(await turn).status_code for turn in (running, waiting)] == [200, 200]
        assert (await hermes.client.delete("/api/sessions/d1")).status_code == 200
        assert code_of(await hermes.chat("d1")) == (404, "session_not_found")
        assert (await hermes.client.get("/api/sessions?include_children=1")).json()["data"] == []


@pytest.mark.requirement("embedded:delete:during-turn")
async def test_a_row_deleted_from_elsewhere_during_a_turn_stays_gone(tmp_path: Path) -> None:
    model = GatedModel()
    async with endpoint(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("d1")
        running = asyncio.create_task(hermes.chat("d1"))
        await model.asked.wait()
        await hermes.db.delete_session("d1")
        model.gate.set()

        assert code_of(await running) == (500, "reply_not_stored")
        assert (await hermes.client.get("/api/sessions/d1")).status_code == 404


@pytest.mark.requirement("embedded:turn:caller-leaves")
async def test_a_turn_whose_caller_leaves_is_stored(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        leaving = asyncio.create_task(hermes.chat("s", "one"))
        await model.asked.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        model.gate.set()
        # The next turn waits for the abandoned one.
        assert (await hermes.chat("s", "two")).status_code == 200

        assert [row["content"] for row in (await hermes.messages("s"))[1]] == ["one", "Reply 1", "two", "Reply 2"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (None, "missing_message"),
        ("", "missing_message"),
        ("  \n", "missing_message"),
        (5, "missing_message"),
        ({"text": "x"}, "missing_message"),
        ([], "missing_message"),
        ([{"type": "text", "text": " "}], "missing_message"),
        ([{"type": "text", "text": "x"}, {"type": "file"}], "unsupported_content_type"),
        (["a", "b"], "missing_message"),
        ([{"type": "video"}], "missing_message"),
        ([{"text": "no type"}], "missing_message"),
        ([{"type": "text", "text": "x"}, {"type": "video"}], "unsupported_content_type"),
        ([{"type": "text", "text": "x"}, {"text": "no type"}], "unsupported_content_type"),
        ([{"type": "image_url", "image_url": "data:text/plain;base64,aGk="}], "unsupported_content_type"),
        ([{"type": "image_url"}], "invalid_image_url"),
        ([{"type": "input_image", "image_url": {"url": "ftp://host/y.png"}}], "invalid_image_url"),
        ([5], "missing_message"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png"}}], "unsupported_content_type"),
        ([{"type": "image_url", "image_url": {"url": PICTURE, "detail": 5}}], "invalid_content_part"),
    ],
)
@pytest.mark.requirement("embedded:turn:input")
async def test_a_message_of_another_form_is_refused_with_its_code(tmp_path: Path, message: object, code: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        answer = await hermes.chat("s", message)

        assert code_of(answer) == (400, code)
        assert answer.json()["error"]["param"] == (None if code == "missing_message" else "message")
        assert (await hermes.session("s"))["message_count"] == 0


@pytest.mark.parametrize("name", ["system_message", "instructions"])
@pytest.mark.requirement("embedded:turn:input")
async def test_a_system_message_is_a_text(tmp_path: Path, name: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        assert code_of(await hermes.chat("s", "x", **{name: ["a"]})) == (400, "invalid_system_message")
        assert (await hermes.chat("s", "x", **{name: 0})).status_code == 200


@pytest.mark.parametrize(
    ("message", "sent", "stored"),
    [
        ("x" * 70_000, "x" * 65_536, "x" * 65_536),
        ("W\0s\ud83d", "W\0s\ufffd", "W\0s\ufffd"),
        (["a", {"type": "INPUT_TEXT", "text": 5}], "a\n5", "a\n5"),
        ([{"type": "text", "text": "x"}, 5, {"type": "text", "text": ""}, "y"], "x\ny", "x\ny"),
        (
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}],
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}],
            "look\n[screenshot]",
        ),
    ],
)
@pytest.mark.requirement("embedded:turn:input")
async def test_texts_and_images_reach_the_model_and_the_transcript(
    tmp_path: Path, message: object, sent: object, stored: str
) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await hermes.create("s")
        # Sent as ASCII JSON, so that a lone surrogate can travel.
        assert (await post_ascii(hermes.client, {"message": message})).status_code == 200

        assert model.requests[0].messages[-1]["content"] == sent
        assert (await hermes.messages("s"))[1][0]["content"] == stored


@pytest.mark.requirement("embedded:turn:session-key")
async def test_a_session_key_is_echoed_and_leaves_no_trace(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        path, body = "/api/sessions/s/chat", {"message": "x"}
        kept = await hermes.client.post(path, json=body, headers={"X-Hermes-Session-Key": " tenant-a:case-9 "})
        without = await hermes.client.post(path, json=body, headers={"X-Hermes-Session-Key": "  "})
        refused = await hermes.client.post(path, json=body, headers={"X-Hermes-Session-Key": "k" * 257})

        assert kept.headers["x-hermes-session-key"] == "tenant-a:case-9"
        assert "x-hermes-session-key" not in without.headers
        assert refused.status_code == 400
        assert refused.json() == {"error": {"message": "Session key too long", "type": "invalid_request_error"}}
        stored = await hermes.db.get_session("s")
        assert stored is not None
        assert stored["session_key"] is None


async def post_ascii(client: Any, body: dict[str, Any]) -> Any:
    return await client.post("/api/sessions/s/chat", content=json.dumps(body).encode("ascii"))
