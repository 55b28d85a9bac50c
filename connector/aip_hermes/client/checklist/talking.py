"""Points 6 to 8: a turn that is proven by what was stored, and a change of nothing but the title."""

from __future__ import annotations

from typing import Final

from aip_hermes.client.checklist.case import Case, Point
from aip_hermes.client.hermes_objects import Message
from aip_hermes.client.lifecycle.failures import NotVerified
from aip_hermes.client.lifecycle.states import EffectsLook
from aip_hermes.hermes_api import stored_text

__all__ = ["ANSWERS_ON_FAILURE", "renamed", "transcript", "turn"]

ANSWERS_ON_FAILURE: Final = "answers-on-failure"

_SCHEMA_CODE: Final = "action.input_schema_invalid"
_SYSTEM: Final = "Do not call tools."


async def turn(case: Case, point: Point) -> None:
    """Run one bounded turn; its answer is model output, so reads decide."""
    before = await case.row(point, case.source_id)
    looks: list[str] = []

    async def confirm(look: EffectsLook) -> bool:
        looks.append(look.turn)
        return True

    point.did("SessionLifecycle.chat: one turn, then the active messages, then the application's own look")
    try:
        case.turn = await case.life.chat(
            case.open_source, case.question, step="turn", system_message=_SYSTEM, confirm_effects=confirm
        )
    except NotVerified:
        # The endpoint answered as if it had run, and nothing of it, or only the question, is stored.
        point.quirks.append(ANSWERS_ON_FAILURE)
        raise
    case.source = case.turn.session
    after = await case.row(point, case.turn.session.id)
    point.saw(
        action_id=case.turn.action_id,
        effective_id=case.turn.session.id,
        adopted=case.turn.adopted,
        proof=case.turn.proof,
        messages_before=before.message_count,
        messages_after=after.message_count,
    )
    point.check("question and finished reply were read back", case.turn.proof in ("messages", "row"))
    point.check("the application was asked once for the effects, of a turn that is stored", looks == ["stored"])
    kept = case.turn.session.id == case.source_id
    point.check("another id is adopted for a proven compression only", kept or case.turn.adopted)


async def transcript(case: Case, point: Point) -> None:
    """Read the active messages again: the user's row is what was sent, a finished reply follows."""
    point.did(f"read the active messages of {case.open_source.id}")
    active = await case.life.messages(case.open_source)
    asked = [row for row in active.messages if row.role == "user" and row.content == stored_text(case.question)]
    replies = [row for row in active.messages if asked and row.id > asked[-1].id and _finished(row)]
    point.saw(
        messages=len(active.messages),
        effective_id=active.session.id,
        own=active.own,
        question_id=asked[-1].id if asked else None,
        reply_id=replies[-1].id if replies else None,
    )
    point.saw_hash(question=stored_text(case.question), reply=replies[-1].content if replies else None)
    point.check("the messages are those of this session", active.own)
    point.check("the user's row is the text that was sent, stored once", len(asked) == 1)
    point.check("a finished reply follows it", bool(replies))


async def renamed(case: Case, point: Point) -> None:
    """Change the title and read it back; a member that can't be changed is refused whole."""
    case.title += ", reviewed"
    point.did("SessionLifecycle.rename: one change, then the exact row")
    await case.life.rename(case.open_source, case.title, step="rename")
    row = await case.row(point, case.open_source.id)
    point.saw_hash(title=row.title)
    point.check("the new title is read back", row.title == case.title)
    code = await case.code_of(point, "session_patch", {"session_id": str(row.id), "body": {"model": "another"}})
    again = await case.row(point, row.id)
    point.saw(refused_member=code)
    point.check("a member besides title and end reason is refused by the published schema", code == _SCHEMA_CODE)
    point.check("the refused change changed nothing", (again.model, again.title) == (row.model, row.title))


def _finished(row: Message) -> bool:
    return row.role == "assistant" and row.finish_reason not in (None, "tool_calls")
