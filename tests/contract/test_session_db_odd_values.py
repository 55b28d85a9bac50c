"""Values that no model and no person sends on purpose: stored or refused, they spoil nothing that is read later."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.json_text import MAX_LEVELS, json_text, json_value
from tests.support.embedded_endpoint import endpoint
from tests.support.session_stores import OpenStore

DEEP_TEXT = "[" * 100_000


def nested(levels: int) -> list[Any]:
    value: list[Any] = ["innermost"]
    for _ in range(levels - 1):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


ODD: dict[str, Any] = {
    "deep text": DEEP_TEXT,
    "deep list": nested(3_000),
    "deep enough for some readers alone": nested(900),
    "circle": circle(),
    "no JSON": [datetime.timedelta(days=1)],
    "no key": [{(1, 2): "a"}],
    "no number": [math.nan, math.inf, 1.5],
    "large": [10**5_000],
}
FIELDS = ("content", "tool_calls", "display_metadata", "reasoning_details", "codex_message_items")


@pytest.mark.requirement("session_db:messages:readable")
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("odd", ODD)
async def test_no_value_makes_a_transcript_unreadable(
    session_db: SessionDB, session_store: OpenStore, field: str, odd: str
) -> None:
    value: Any = {"m": ODD[odd]} if field == "display_metadata" and odd != "deep text" else ODD[odd]
    given: dict[str, Any] = {field: value}
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "assistant", "before")
    await session_db.append_message("s", "assistant", **given)
    await session_db.append_message("s", "user", "after")

    async with session_store() as fresh:
        rows = await fresh.get_messages("s")
        told = await fresh.get_messages_as_conversation("s")
        model, _ = await fresh.get_resume_conversations("s")
        exported = await fresh.export_session("s")
        found = await fresh.search_messages("after")

    assert [row["content"] for row in (rows[0], rows[2])] == ["before", "after"]
    assert (len(rows), len(told), model[-1]["content"], len(found)) == (3, 3, "after", 1)
    assert exported is not None
    # Any strict reader of JSON takes what is stored, however it is nested.
    assert json.loads(json.dumps(exported["messages"], allow_nan=False)) == exported["messages"]


@pytest.mark.requirement("session_db:messages:readable")
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (math.nan, "nan"), (-math.inf, "-inf"), (2**63 - 1, 2**63 - 1), (2**64, str(2**64)), (1.5, 1.5), (True, True),
        ([1, math.inf], [1, "inf"]), ({"a": {"b": math.nan}}, {"a": {"b": "nan"}}),
    ],
)  # fmt: skip
async def test_a_number_that_no_engine_holds_is_stored_as_its_text(
    session_db: SessionDB, given: object, stored: object
) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "user", given)

    (row,) = await session_db.get_messages("s")
    assert row["content"] == stored


@pytest.mark.requirement("session_db:messages:readable")
@pytest.mark.parametrize(
    ("given", "stored"),
    [(7, 7), (0, 0), (3.0, 3), (None, None), (-5, None), ("7", None), (True, None), (2**70, None), (math.nan, None)],
)
async def test_a_token_count_is_a_whole_number_or_none(session_db: SessionDB, given: Any, stored: int | None) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "user", "x", token_count=given)

    (row,) = await session_db.get_messages("s")
    assert row["token_count"] == stored
    exported = await session_db.export_session("s")
    await session_db.delete_session("s")
    assert exported is not None
    assert (await session_db.import_sessions([exported]))["ok"]


@pytest.mark.requirement("session_db:messages:readable")
def test_what_is_nested_no_deeper_than_the_limit_keeps_its_shape() -> None:
    least, most = nested(2), nested(MAX_LEVELS)
    wide = [[number] for number in range(1_000)]

    assert [json_value(json_text(value)) for value in (least, most, wide)] == [least, most, wide]
    deeper = json_value(json_text(nested(MAX_LEVELS + 1)))
    for _ in range(MAX_LEVELS):
        (deeper,) = deeper
    assert deeper == "['innermost']"


@pytest.mark.requirement("session_db:messages:readable")
async def test_a_configuration_that_nobody_can_follow_leaves_listings_alone(session_db: SessionDB) -> None:
    told = await session_db.import_sessions([{"id": "deep", "source": "cli", "model_config": DEEP_TEXT}])
    assert told["ok"]
    await session_db.create_session("next", "cli", parent_session_id="deep", model_config={"rate": math.nan})

    assert {row["id"] for row in await session_db.list_sessions_rich(include_children=True)} == {"deep", "next"}
    row = await session_db.get_session("next")
    assert row is not None
    assert json.loads(row["model_config"]) == {"rate": "nan"}


@pytest.mark.requirement("session_db:messages:readable")
async def test_an_endpoint_shows_what_a_library_stored(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        for content in (b"raw \xff bytes", math.nan, [math.inf, nested(3_000)], {"a": datetime.timedelta(days=1)}, 7):
            await hermes.db.append_message("s", "user", content)

        answer = await hermes.client.get("/api/sessions/s/messages")
        assert answer.status_code == 200
        shown = [message["content"] for message in answer.json()["data"]]
        assert (shown[:2], shown[4]) == (["raw \ufffd bytes", "nan"], 7)
        turn = await hermes.client.post("/api/sessions/s/chat", json={"message": "go on"})
        assert turn.status_code == 200
