"""Compression on demand: rotating into a new row, or in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.hermes_api import is_continuation_id
from tests.support.embedded_endpoint import RecordingModel, Running, endpoint

CHATS = ["session_chat", "session_chat_stream"]


async def turn(hermes: Running, operation: str, text: str) -> str:
    """Take a turn; return the effective id that it tells."""
    path = "/api/sessions/s/chat" + ("/stream" if operation == "session_chat_stream" else "")
    answer = await hermes.client.post(path, json={"message": text})
    assert answer.status_code == 200
    if operation == "session_chat":
        told: dict[str, Any] = answer.json()
        assert answer.headers["x-hermes-session-id"] == told["session_id"]
        return str(told["session_id"])
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert {event["session_id"] for event in events[:3]} == {"s"} == {answer.headers["x-hermes-session-id"]}
    return str(events[-2]["session_id"])


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["content"] for row in rows]


@pytest.mark.parametrize("operation", CHATS)
@pytest.mark.requirement("embedded:compression:rotating")
async def test_a_rotating_compression_ends_the_row_and_the_turn_goes_on_in_a_new_one(
    tmp_path: Path, operation: str
) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model, faults=[f"compress:{operation}:1"]) as hermes:
        await hermes.create("s", title="Case", system_prompt="P")
        for number in range(6):
            await hermes.db.append_message("s", ("user", "assistant")[number % 2], f"m{number}")
        child_id = await turn(hermes, operation, "on")
        source, child = await hermes.session("s"), await hermes.session(child_id)
        resolved, rows = await hermes.messages("s")

        assert is_continuation_id(child_id)
        assert (source["end_reason"], source["message_count"], source["title"]) == ("compression", 6, "Case")
        assert (child["parent_session_id"], child["title"], child["ended_at"]) == ("s", "Case #2", None)
        assert (child["source"], child["has_system_prompt"], child["message_count"]) == ("api_server", True, 7)
        assert resolved == child_id
        assert texts(rows[:2] + rows[3:]) == ["m0", "m1", "m4", "m5", "on", "Reply 1"]
        assert rows[2]["role"] == "assistant"
        assert rows[2]["content"].startswith("[CONTEXT COMPACTION")
        assert texts(await hermes.db.get_messages("s")) == [f"m{number}" for number in range(6)]
        assert (await hermes.chat("s", "again")).json()["session_id"] == child_id
        listed = (await hermes.client.get("/api/sessions")).json()["data"]
        assert [(row["id"], row["_lineage_root_id"]) for row in listed] == [(child_id, "s")]


@pytest.mark.parametrize("operation", CHATS)
@pytest.mark.requirement("embedded:compression:in-place")
async def test_a_compression_in_place_keeps_the_id_and_hides_the_old_rows(tmp_path: Path, operation: str) -> None:
    async with endpoint(tmp_path, model=RecordingModel(), faults=[f"compress-in-place:{operation}:1"]) as hermes:
        await hermes.create("s")
        for number in range(12):
            await hermes.db.append_message("s", ("user", "assistant")[number % 2], f"m{number}")
        before = await hermes.db.get_messages("s")
        assert await turn(hermes, operation, "on") == "s"
        row = await hermes.session("s")
        resolved, rows = await hermes.messages("s")

        assert (resolved, row["ended_at"], row["message_count"]) == ("s", None, 9)
        assert texts(rows[:3] + rows[4:]) == ["m0", "m1", "m2", "m9", "m10", "m11", "on", "Reply 1"]
        assert rows[3]["content"].startswith("[CONTEXT COMPACTION")
        assert rows[0]["id"] > before[-1]["id"]
        assert rows[0]["timestamp"] == before[0]["timestamp"]
        everything = await hermes.db.get_messages("s", include_inactive=True)
        assert [(old["content"], old["active"], old["compacted"]) for old in everything[:12]] == [
            (f"m{number}", 0, 1) for number in range(12)
        ]


@pytest.mark.parametrize(("fault", "count"), [("compress", 3), ("compress-in-place", 3)])
@pytest.mark.requirement("embedded:compression:rotating", "embedded:compression:in-place")
async def test_a_transcript_of_one_turn_becomes_a_summary(tmp_path: Path, fault: str, count: int) -> None:
    async with endpoint(tmp_path, faults=[f"{fault}:session_chat:2"]) as hermes:
        await hermes.create("s")
        # Nothing is stored yet, so there is nothing to compress.
        assert (await hermes.chat("s", "one")).json()["session_id"] == "s"
        effective = (await hermes.chat("s", "two")).json()["session_id"]
        _, rows = await hermes.messages(effective)
        assert [row["role"] for row in rows] == ["assistant", "user", "assistant"]
        assert (await hermes.session(effective))["message_count"] == count


@pytest.mark.requirement("embedded:compression:rotating")
async def test_a_row_that_has_ended_does_not_rotate(tmp_path: Path) -> None:
    async with endpoint(tmp_path, faults=["compress:session_chat:1"]) as hermes:
        await hermes.create("s")
        await hermes.db.append_message("s", "user", "old")
        await hermes.client.patch("/api/sessions/s", json={"end_reason": "done"})
        assert (await hermes.chat("s", "on")).json()["session_id"] == "s"
        assert (await hermes.session("s"))["end_reason"] == "done"


@pytest.mark.requirement("embedded:compression:rotating")
async def test_a_second_rotation_goes_on_from_the_tip(tmp_path: Path) -> None:
    async with endpoint(tmp_path, faults=["compress:session_chat:3"]) as hermes:
        await hermes.create("s", title="Case")
        ids = [(await hermes.chat("s", text)).json()["session_id"] for text in ("one", "two", "three")]
        assert len(set(ids)) == 3
        last = await hermes.session(ids[2])
        assert (last["parent_session_id"], last["title"]) == (ids[1], "Case #3")
        assert (await hermes.messages("s"))[0] == ids[2]
