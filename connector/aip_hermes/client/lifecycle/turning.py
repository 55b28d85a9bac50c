"""Turns, and the active messages that prove them. A reply is model output, no proof (design D20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.lifecycle import failures as failing
from aip_hermes.client.lifecycle.carrying import Carried
from aip_hermes.client.lifecycle.footing import Footing
from aip_hermes.client.lifecycle.journal import Plan
from aip_hermes.client.lifecycle.reading import Active
from aip_hermes.client.lifecycle.rows import superseded
from aip_hermes.client.lifecycle.states import (
    ActiveMessages,
    ClosedSession,
    ConfirmEffects,
    EffectsLook,
    OpenSession,
    VerifiedTurn,
)
from aip_hermes.client.lifecycle.verifying import reply_of, stored_turn
from aip_hermes.ids import ActionId, HermesSessionId

__all__ = ["Way", "chat", "messages"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How the reply of a turn comes. attended: what goes on beside the action while it is carried through."""

    operation: str
    mode: ActionMode
    attended: Callable[[ActionId], AbstractAsyncContextManager[None]]


ANSWERED: Final = Way(operation="session_chat", mode="sync", attended=lambda _: nullcontext())


async def chat(
    footing: Footing,
    *,
    session: OpenSession,
    message: Any,
    system_message: str | None,
    step: str,
    confirm_effects: ConfirmEffects | None,
    way: Way = ANSWERED,
) -> VerifiedTurn:
    """Run one turn; it is done when question and reply are among the active messages and the effects are confirmed."""

    async def before(target: HermesSessionId | None) -> Mapping[str, Any]:
        return await _before(footing, target or session.id, step=step)

    plan = await footing.begin(
        step=step,
        operation=way.operation,
        wanted={"session_id": session.id, "message": message, "system_message": system_message},
        session_id=session.id,
        before=before,
    )
    if plan.state == "done":
        return await _told_again(footing, plan, session)
    target = plan.session_id or session.id
    async with way.attended(plan.action_id):
        try:
            carried = await footing.carry(
                plan, _input(target, session, message=message, system_message=system_message), mode=way.mode
            )
        except failing.NotApplied as absent:
            await _confirm(confirm_effects, plan, session_id=target, turn="absent", cause=absent)
            raise
        found, reply = await _verify(footing, plan, carried, message=message)
        effective = HermesSessionId(found["session_id"])
        await _confirm(confirm_effects, plan, session_id=effective, turn="stored", cause=None)
        if effective != target:
            await footing.journal.moved(old=target, new=effective)
        plan = await footing.done(plan, found)
    return VerifiedTurn(
        session=replace(session, id=effective),
        action_id=plan.action_id,
        reply=reply,
        adopted=effective != target,
        proof=found["proof"],
    )


async def messages(footing: Footing, *, session: OpenSession | ClosedSession) -> ActiveMessages:
    """Read the active messages; a proven continuation is adopted, another answer proves nothing (design D15)."""
    target = await footing.journal.current(session.id)
    active = await footing.reads.messages(target)
    if active is None:
        raise failing.NoSuchSession(
            f"the endpoint has no session {target}",
            next_step="look at `steps()` whether it was deleted",
            session_id=target,
        )
    handle: OpenSession | ClosedSession = session
    if active.effective != target:
        await footing.journal.moved(old=target, new=active.effective)
        handle = OpenSession(id=active.effective, session_key=session.session_key)
    elif target != session.id:
        handle = OpenSession(id=target, session_key=session.session_key)
    return ActiveMessages(session=handle, messages=active.messages, whose=active.whose, own=active.own)


async def _before(footing: Footing, target: HermesSessionId, *, step: str) -> Mapping[str, Any]:
    row = await footing.reads.get(target, step=step)
    if row.ended_at is not None:
        superseded(row, step=step)
        if footing.policy.turns_after_close == "refuse":
            raise failing.SessionClosed(
                f"session {target} was closed as {row.end_reason!r}; nothing was sent",
                next_step="fork it, or create another one; Hermes itself would run the turn",
                step=step,
                session_id=target,
            )
    active = await footing.reads.messages(target)
    if active is None or row.message_count is None:
        footing.refuse(
            f"session {target} can't be read, so that no turn of it could be verified; nothing was sent",
            next_step="read it again later; nothing was begun",
            session_id=target,
            step=step,
        )
    return {"message_count": row.message_count, "last_id": active.last_id}


def _input(
    target: HermesSessionId, session: OpenSession, *, message: Any, system_message: str | None
) -> dict[str, Any]:
    body = {"message": message} | ({} if system_message is None else {"system_message": system_message})
    memory = {} if session.session_key is None else {"session_key": str(session.session_key)}
    return {"session_id": str(target), **memory, "body": body}


async def _verify(footing: Footing, plan: Plan, carried: Carried, *, message: Any) -> tuple[dict[str, Any], Any]:
    """Return what is kept of a turn that reads show, and its reply. Raises: NotVerified."""
    assert plan.session_id is not None  # noqa: S101 - a turn has a session
    effect = carried.result.session if carried.result is not None else None
    effective = effect.effective if effect is not None and effect.reason == "compression" else plan.session_id
    active = await footing.reads.messages(effective)
    if active is None:
        await footing.not_verified(plan, ["the session is gone"])
    if not active.own:
        return await _counted(footing, plan, carried, effective)
    turn = stored_turn(active, message=message, after=plan.before["last_id"])
    if turn is None:
        await footing.not_verified(plan, ["the question is not among the active messages"])
    if turn.reply is None:
        await footing.not_verified(plan, ["the question is stored without a finished reply"])
    found = {"session_id": str(active.effective), "message_id": turn.reply.id, "proof": "messages"}
    return found, turn.reply.content


async def _counted(
    footing: Footing, plan: Plan, carried: Carried, session_id: HermesSessionId
) -> tuple[dict[str, Any], Any]:
    """Judge by the row where the endpoint answers with another session's messages: a fork's, with 0.19.0."""
    row = await footing.reads.get(session_id, step=plan.step)
    if (row.message_count or 0) < plan.before["message_count"] + 2:
        await footing.not_verified(plan, ["the row did not grow by a question and a reply"])
    output = carried.result.output if carried.result is not None else None
    return {"session_id": str(session_id), "message_id": None, "proof": "row"}, _answered_in(output)


def _answered_in(output: Any) -> Any:
    """Return the reply in an output: a message of its own, or the text that a stream gathered."""
    if not isinstance(output, Mapping):
        return None
    said = output.get("message")
    return said.get("content") if isinstance(said, Mapping) else output.get("text")


async def _told_again(footing: Footing, plan: Plan, session: OpenSession) -> VerifiedTurn:
    """Return a turn that was done before; its reply is read from the messages where it still is among them."""
    effective = HermesSessionId(plan.found.get("session_id") or plan.session_id or session.id)
    message_id = plan.found.get("message_id")
    active: Active | None = None
    if message_id is not None:
        active = await footing.reads.messages(await footing.journal.current(effective))
    return VerifiedTurn(
        session=replace(session, id=effective),
        action_id=plan.action_id,
        reply=None if message_id is None else reply_of(active, message_id=message_id),
        adopted=effective != plan.session_id,
        proof=plan.found.get("proof", "decision"),
    )


async def _confirm(
    confirm_effects: ConfirmEffects | None,
    plan: Plan,
    *,
    session_id: HermesSessionId,
    turn: Literal["stored", "absent"],
    cause: Exception | None,
) -> None:
    if confirm_effects is None:
        return
    look = EffectsLook(step=plan.step, session_id=session_id, action_id=plan.action_id, turn=turn)
    if await confirm_effects(look):
        return
    told = "do not show what the turn should have done" if turn == "stored" else "show that the turn did something"
    raise failing.EffectsNotConfirmed(
        f"step {plan.step!r}: the systems that the turn may have changed {told}",
        next_step=(
            "put them right, then run the step again: it asks `confirm_effects` again and sends nothing"
            if turn == "stored"
            else "let a person look at them before the turn is sent again: its transcript shows nothing of it"
        ),
        step=plan.step,
        action_id=plan.action_id,
        session_id=session_id,
        uncertain=turn == "absent",
    ) from cause
