"""A fork: it ends its source, and both sides are read back (design D16)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from aip_hermes.client.lifecycle.footing import Footing
from aip_hermes.client.lifecycle.rows import superseded
from aip_hermes.client.lifecycle.states import ClosedSession, Forked, OpenSession, SharedSessionKey
from aip_hermes.client.lifecycle.verifying import child_problems, projection_problems
from aip_hermes.ids import HermesSessionId, HermesSessionKey

__all__ = ["fork"]

_BRANCHED = "branched"


async def fork(
    footing: Footing,
    *,
    source: OpenSession | ClosedSession,
    child_id: HermesSessionId,
    title: str | None,
    session_key: HermesSessionKey | None,
    step: str,
) -> Forked:
    """Fork a session into a child that the caller names."""

    async def before(target: HermesSessionId | None) -> Mapping[str, Any]:
        row = await footing.reads.get(target or source.id, step=step)
        superseded(row, step=step)
        return {"message_count": row.message_count, "end_reason": row.end_reason}

    body = {"id": str(child_id)} | ({} if title is None else {"title": title})
    plan = await footing.begin(
        step=step,
        operation="session_fork",
        wanted={"session_id": source.id, "body": body, "session_key": session_key},
        session_id=source.id,
        new_session_id=child_id,
        before=before,
    )
    await footing.journal.keep_session_key(session_id=child_id, session_key=session_key)
    shares = session_key is not None and session_key == source.session_key
    if shares:
        warnings.warn(
            f"sessions {source.id} and {child_id} share one session key: the child's turns read and write the"
            " long-term memory of its parent's",
            SharedSessionKey,
            stacklevel=3,
        )
    target = plan.session_id or source.id
    if plan.state != "done":
        await footing.carry(plan, {"session_id": str(target), "body": body})
        source_row, child_row = await footing.reads.get(target, step=step), await footing.reads.find(child_id)
        if child_row is None:
            await footing.not_verified(plan, ["there is no child"])
        copied = await footing.reads.messages(child_id)
        problems = child_problems(child_row, source=source_row, before=plan.before, copied=copied, title=title)
        listed = await footing.reads.listed(child_id, children=True)
        if listed.entry is None:
            problems.append(f"no list shows the child ({listed.seen} sessions on {listed.pages} pages)")
        else:
            problems += projection_problems(child_row, listed.entry)
        if problems:
            await footing.not_verified(plan, problems)
        plan = await footing.done(plan, {"end_reason": source_row.end_reason})
    return Forked(
        source=ClosedSession(
            id=target, reason=plan.found.get("end_reason") or _BRANCHED, session_key=source.session_key
        ),
        child=OpenSession(id=child_id, session_key=session_key),
        shares_session_key=shares,
    )
