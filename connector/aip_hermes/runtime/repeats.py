"""Answering who repeats what is known or runs already: from the store, or when the one who runs has ended.

Source: runtime behaviour §6, §7; design D3, D7, D23.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime import approvals
from aip_hermes.runtime.answers import acknowledged
from aip_hermes.runtime.erasure import erase, is_due
from aip_hermes.runtime.fence import Bound, Running, Verdict, in_progress, look
from aip_hermes.runtime.fence_hits import count_hit
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import from_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Repeats", "Reply"]

Reply = wire.ActionResult | wire.Ack


class Repeats:
    """Answers repeats of an Action ID or a key."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing

    async def look(self, submission: Submission) -> Bound | Running | None:
        """Say what is known of an Action ID and its key; None for something new."""
        return await self._footing.database.look_up(
            lambda connection: look(connection, submission, now=self._footing.now_ms())
        )

    async def answered(self, submission: Submission) -> Reply | None:
        """Answer a repeat of what is known; None for something new."""
        verdict = await self.look(submission)
        return None if verdict is None else await self.from_verdict(submission, verdict)

    async def from_verdict(self, submission: Submission, verdict: Verdict) -> Reply:
        """Answer from the store, or wait for the one who runs. Who asked for no result now is told that it waits."""
        count_hit(self._footing, submission, verdict)
        if isinstance(verdict, Running) and submission.action.mode == "async":
            return acknowledged(verdict.owner)
        if isinstance(verdict, Running):
            return await self._wait_for(submission, verdict)
        assert isinstance(verdict, Bound)  # noqa: S101 - a claim is no answer
        if verdict.action["state"] == "pending_approval":
            verdict = await self._expire(submission, verdict)
        elif is_due(verdict.action, now=self._footing.now_ms(), keep_ms=self._footing.limits.transcripts_ms):
            verdict = await self._without_text(verdict)
        return verdict.result()

    async def _without_text(self, bound: Bound) -> Bound:
        """Text that was kept long enough goes before it is answered again (design D23)."""

        def once(connection: Connection) -> Mapping[str, Any]:
            erase(connection, bound.action, reason="expired", now=self._footing.now_ms())
            return approvals.action_of(connection, bound.action["tenant"], bound.action["action_id"])

        return replace(bound, action=await self._footing.database.write(once))

    async def _wait_for(self, submission: Submission, running: Running) -> wire.ActionResult:
        """Wait for an equal submission that runs; its answer is ours, whatever it is."""
        address = {"tenant": submission.tenant, "action_id": running.owner}
        end = self._footing.finished.register(**address)

        def look_again(connection: Connection) -> tuple[Verdict | None, Mapping[str, Any]]:
            verdict = look(connection, submission, now=self._footing.now_ms())
            return verdict, approvals.action_of(connection, submission.tenant, running.owner)

        try:
            again, row = await self._footing.database.read(look_again)
            if isinstance(again, Running) and again.owner == running.owner:
                stored = await within(self._footing.limits.key_wait_ms / 1000, end, clock=self._footing.clock)
                return running.bound.result(stored)
            return running.bound.result(from_json(row["result"]))
        except Overrun:
            raise in_progress(running, submission, now=self._footing.now_ms()) from None
        finally:
            self._footing.finished.forget(end, **address)

    async def _expire(self, submission: Submission, bound: Bound) -> Bound:
        """A pending approval whose time is up ends before it is shown."""
        now = self._footing.now_ms()
        tenant, approval_id = submission.tenant, bound.action["approval_id"]

        def look(connection: Connection) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
            row = approvals.fetch(connection, tenant=tenant, approval_id=approval_id)
            return row, approvals.action_of(connection, tenant, bound.action["action_id"])

        row, action = await self._footing.database.read(look)
        if row is None or not approvals.overdue(row, now=now):
            # As it is now: something may have ended it since it was found.
            return replace(bound, action=action)

        def end(connection: Connection) -> Mapping[str, Any]:
            approvals.expire(connection, row, now=now)
            return approvals.action_of(connection, tenant, bound.action["action_id"])

        return replace(bound, action=await self._footing.database.write(end))
