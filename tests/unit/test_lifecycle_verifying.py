"""What reads must show before a step counts as done, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.client.hermes_objects import session_of, transcript_of
from aip_hermes.client.lifecycle.reading import Active
from aip_hermes.client.lifecycle.verifying import (
    child_problems,
    created_problems,
    projection_problems,
    reply_of,
    stored_turn,
)
from aip_hermes.ids import HermesSessionId

S = HermesSessionId("s")


def row(**members: Any) -> Any:
    return session_of({"session": {"id": "s", "source": "api_server", "started_at": 1.0, **members}})


def active(*rows: tuple[int, str, str, str | None], whose: str = "s") -> Active:
    """Return messages of (id, role, content, finish_reason)."""
    data = [{"id": i, "role": role, "content": said, "finish_reason": end} for i, role, said, end in rows]
    read = transcript_of({"data": data, "session_id": whose}, requested=S)
    return Active(requested=S, whose=read.session_id, reason="none", messages=read.messages)


ASKED, OTHER = (7, "user", "hello", None), (7, "user", "else", None)
REPLY = (9, "assistant", "done", "stop")


@pytest.mark.requirement("lifecycle:verified")
@pytest.mark.parametrize(
    ("rows", "reply"),
    [
        ([ASKED, REPLY], 9),
        ([ASKED, (8, "assistant", "", "tool_calls"), (9, "tool", "42", None), (10, "assistant", "done", "length")], 10),
        ([ASKED, (8, "assistant", "", "tool_calls")], None),
        ([ASKED, (8, "assistant", "cut off", None)], None),
        ([ASKED], None),
        # The reply to the next question is not ours.
        ([ASKED, (8, "user", "and?", None), REPLY], None),
        # Rows that compression kept have new ids: of two equal questions the last one is the turn's.
        ([(6, "user", "hello", None), (7, "assistant", "old", "stop"), (8, "user", "hello", None), REPLY], 9),
    ],
)
def test_a_turn_is_its_question_and_a_finished_reply(rows: list[Any], reply: int | None) -> None:
    found = stored_turn(active(*rows), message="hello", after=5)
    assert found is not None
    assert (found.reply.id if found.reply else None) == reply


@pytest.mark.requirement("lifecycle:verified")
@pytest.mark.parametrize("rows", [[], [OTHER, REPLY], [(4, "user", "hello", None), (5, "assistant", "old", "stop")]])
def test_what_was_there_before_is_no_turn(rows: list[Any]) -> None:
    assert stored_turn(active(*rows), message="hello", after=5) is None


@pytest.mark.requirement("lifecycle:verified")
def test_a_question_is_looked_for_as_hermes_stores_it() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    stored = (7, "user", "look\n[screenshot]", None)
    assert stored_turn(active(stored, REPLY), message=[{"type": "text", "text": "look"}, image], after=5) is not None
    long = "x" * 70_000
    assert stored_turn(active((7, "user", long[:65_536], None), REPLY), message=long, after=5) is not None
    assert reply_of(active(ASKED, REPLY), message_id=9) == "done"
    assert reply_of(active(ASKED), message_id=9) is None
    assert reply_of(None, message_id=9) is None


@pytest.mark.requirement("lifecycle:verified")
@pytest.mark.parametrize(
    ("members", "problems"),
    [
        ({"title": "A case"}, 0),
        ({"title": "another"}, 1),
        ({"title": "A case", "source": "unknown"}, 1),
        ({"title": "A case", "ended_at": 2.0}, 1),
        ({"source": "cron", "ended_at": 2.0}, 3),
    ],
)
def test_a_new_row_is_what_was_wanted(members: dict[str, Any], problems: int) -> None:
    assert len(created_problems(row(**members), title=" A  case ")) == problems


@pytest.mark.requirement("lifecycle:verified")
def test_a_list_shows_the_row() -> None:
    assert projection_problems(row(title="T", message_count=0), row(title="T", message_count=4, preview="x")) == []
    [problem] = projection_problems(row(title="T"), row(title="U"))
    assert "title" in problem
    assert len(projection_problems(row(), row(source="cron", started_at=2.0, parent_session_id="p"))) == 3


CHILD = {"id": "child", "parent_session_id": "s", "title": "Child"}
ENDED = {"ended_at": 2.0, "end_reason": "branched"}
COPIED = active(ASKED, REPLY)


@pytest.mark.requirement("lifecycle:verified")
@pytest.mark.parametrize(
    ("child", "source", "before", "copied", "problems"),
    [
        ({}, ENDED, {}, COPIED, 0),
        ({"parent_session_id": "other"}, ENDED, {}, COPIED, 1),
        ({"title": None}, ENDED, {}, COPIED, 1),
        ({"ended_at": 3.0}, ENDED, {}, COPIED, 1),
        ({}, {}, {}, COPIED, 1),
        ({}, {"ended_at": 2.0, "end_reason": "done"}, {}, COPIED, 1),
        ({}, {"ended_at": 2.0, "end_reason": "done"}, {"end_reason": "done"}, COPIED, 0),
        ({}, ENDED, {}, active(ASKED), 1),
        ({}, ENDED, {}, active(ASKED, REPLY, whose="elsewhere"), 1),
        ({}, ENDED, {}, None, 1),
    ],
)
def test_a_fork_is_both_of_its_sides(
    child: dict[str, Any], source: dict[str, Any], before: dict[str, Any], copied: Active | None, problems: int
) -> None:
    found = child_problems(
        row(**{**CHILD, **child}),
        source=row(**source),
        before={"message_count": 2, **before},
        copied=copied,
        title="Child",
    )
    assert len(found) == problems
