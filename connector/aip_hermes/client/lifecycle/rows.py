"""Steps that make or change one row: create, rename, close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.client.hermes_objects import Session
from aip_hermes.client.lifecycle.failures import SessionSuperseded
from aip_hermes.client.lifecycle.footing import Footing
from aip_hermes.client.lifecycle.states import ClosedSession, OpenSession
from aip_hermes.client.lifecycle.verifying import created_problems, projection_problems
from aip_hermes.hermes_api import clean_title
from aip_hermes.ids import HermesSessionId, HermesSessionKey

__all__ = ["close", "create", "rename", "superseded"]


async def create(
    footing: Footing,
    *,
    session_id: HermesSessionId,
    members: Mapping[str, Any],
    session_key: HermesSessionKey | None,
    step: str,
) -> OpenSession:
    """Create a row, read exactly it, and find it in the listing."""
    body = {"id": str(session_id), **members}

    async def before(_: HermesSessionId | None) -> Mapping[str, Any]:
        return {}

    plan = await footing.begin(
        step=step,
        operation="session_create",
        wanted={"body": body, "session_key": session_key},
        new_session_id=session_id,
        before=before,
    )
    await footing.journal.keep_session_key(session_id=session_id, session_key=session_key)
    if plan.state != "done":
        await footing.carry(plan, {"body": body})
        row = await footing.reads.find(session_id)
        problems = ["there is no such row"] if row is None else created_problems(row, title=members.get("title"))
        listed = await footing.reads.listed(session_id, children=False)
        if listed.entry is None:
            problems.append(f"the list does not show it ({listed.seen} sessions on {listed.pages} pages)")
        elif row is not None:
            problems += projection_problems(row, listed.entry)
        if problems:
            await footing.not_verified(plan, problems)
        await footing.done(plan, {"session_id": str(session_id)})
    return OpenSession(id=session_id, session_key=session_key)


async def rename(footing: Footing, *, session_id: HermesSessionId, title: str | None, step: str) -> HermesSessionId:
    """Change a title and read it back; return the id under which the session goes on."""

    async def before(target: HermesSessionId | None) -> Mapping[str, Any]:
        row = await footing.reads.get(target or session_id, step=step)
        return {"ended": row.ended_at is not None}

    plan = await footing.begin(
        step=step,
        operation="session_patch",
        wanted={"session_id": session_id, "title": title},
        session_id=session_id,
        before=before,
    )
    target = plan.session_id or session_id
    if plan.state != "done":
        await footing.carry(plan, {"session_id": str(target), "body": {"title": title}})
        row = await footing.reads.get(target, step=step)
        if row.title != clean_title(title):
            await footing.not_verified(plan, ["the row has another title"])
        await footing.done(plan, {})
    return target


async def close(footing: Footing, *, session: OpenSession, reason: str, step: str) -> ClosedSession:
    """End a session and read its end back; the first reason wins, so an ended one is refused."""

    async def before(target: HermesSessionId | None) -> Mapping[str, Any]:
        row = await footing.reads.get(target or session.id, step=step)
        if row.ended_at is not None:
            superseded(row, step=step)
            footing.refuse(
                f"session {row.id} was closed before, as {row.end_reason!r}; nothing was sent",
                next_step="`find(session_id)` gives the handle of a closed session; its reason can't be changed",
                session_id=row.id,
                step=step,
            )
        return {"ended": False}

    plan = await footing.begin(
        step=step,
        operation="session_patch",
        wanted={"session_id": session.id, "end_reason": reason},
        session_id=session.id,
        before=before,
    )
    target = plan.session_id or session.id
    if plan.state != "done":
        await footing.carry(plan, {"session_id": str(target), "body": {"end_reason": reason}})
        row = await footing.reads.get(target, step=step)
        if row.ended_at is None:
            await footing.not_verified(plan, ["the row has not ended"])
        if row.end_reason != reason:
            await footing.not_verified(plan, [f"somebody closed it first, as {row.end_reason!r}"])
        await footing.done(plan, {})
    return ClosedSession(id=target, reason=reason, session_key=session.session_key)


def superseded(row: Session, *, step: str) -> None:
    """Refuse a row that was compressed into another one (design D14)."""
    if row.end_reason == "compression":
        raise SessionSuperseded(
            f"session {row.id} was compressed and goes on under another id; nothing was sent",
            next_step="`messages(session)` gives the handle to go on with, where the continuation is proven",
            step=step,
            session_id=row.id,
        )
