"""What every step stands on: plan it once, carry it through, and call it done only when reads show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from aip_hermes import wire
from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.lifecycle.carrying import Carried, Carrier
from aip_hermes.client.lifecycle.failures import NotVerified, WrongTransition
from aip_hermes.client.lifecycle.journal import Journal, Plan
from aip_hermes.client.lifecycle.reading import SessionReads
from aip_hermes.client.lifecycle.states import LifecyclePolicy
from aip_hermes.ids import HermesSessionId
from aip_hermes.ports import Faults

__all__ = ["Footing"]

_MAX_NAME_CHARS: Final = 200
_READ: Final = "read"
_TARGET: Final = "target"


@dataclass(frozen=True, kw_only=True, slots=True)
class Footing:
    """The parts that steps share."""

    reads: SessionReads
    journal: Journal
    carrier: Carrier
    policy: LifecyclePolicy
    faults: Faults

    async def begin(
        self,
        *,
        step: str,
        operation: str,
        wanted: Mapping[str, Any],
        session_id: HermesSessionId | None = None,
        new_session_id: HermesSessionId | None = None,
        before: Callable[[HermesSessionId | None], Awaitable[Mapping[str, Any]]],
    ) -> Plan:
        """Return the plan of a step, kept with what was read before it is first sent.

        wanted: everything that makes the step what it is; kept as a hash. before: reads, and refuses by raising what
        is not possible where the session stands. It is not called for a step that may have been sent.
        """
        if not step.strip() or len(step) > _MAX_NAME_CHARS or not step.isprintable():
            raise ValueError(f"a step has a printable name of at most {_MAX_NAME_CHARS} characters")
        content = wire.sha256_hex({"operation": operation, **wanted})
        plan = await self.journal.plan(step, operation=operation, content=content)
        if plan is not None and (plan.state != "planned" or _READ in plan.before):
            return plan
        target = None if session_id is None else await self.journal.current(session_id)
        if plan is None:
            plan = self.journal.fresh(
                step=step, operation=operation, content=content, session_id=target, new_session_id=new_session_id
            )
        target_name = None if target is None else str(target)
        read = {**await before(target), _READ: True, _TARGET: target_name}
        # Another process may run the same step now: what the first of them read and aimed at counts for both.
        read = dict(await self.journal.keep_before(plan, read))
        aim = read[_TARGET]
        target = None if aim is None else HermesSessionId(aim)
        plan = await self.journal.keep(replace(plan, session_id=target, before=read))
        await self.faults.reach("lifecycle_planned")
        return plan

    async def carry(
        self, plan: Plan, input: Mapping[str, Any], *, may_wait: bool = False, mode: ActionMode = "sync"
    ) -> Carried:
        """Bring a step to its end; see Carrier."""
        carried = await self.carrier.carry(
            plan, input, capability_id=self.reads.capability(plan.operation), may_wait=may_wait, mode=mode
        )
        await self.faults.reach("lifecycle_carried")
        return carried

    async def done(self, plan: Plan, found: Mapping[str, Any]) -> Plan:
        """Keep that a step is done, with what it found: ids and counts, no text."""
        await self.faults.reach("lifecycle_verified")
        plan = await self.journal.keep(replace(plan, state="done", found=dict(found), stuck=None))
        await self.faults.reach("lifecycle_done")
        return plan

    async def not_verified(self, plan: Plan, problems: Sequence[str]) -> NoReturn:
        """Keep and raise that a step was answered as done, and reads show something else."""
        told = "; ".join(problems)
        next_step = (
            f"look at the session; a person then says `decide(step={plan.step!r}, outcome='applied' or 'again', …)`."
            " Run again, the step only reads once more"
        )
        stuck = {"code": NotVerified.code, "message": told, "next_step": next_step, "details": {}}
        await self.journal.keep(replace(plan, stuck=stuck))
        raise NotVerified(
            f"step {plan.step!r} was answered as done, but {told}",
            next_step=next_step,
            step=plan.step,
            action_id=plan.action_id,
            session_id=plan.session_id or plan.new_session_id,
        )

    def refuse(self, message: str, *, next_step: str, session_id: HermesSessionId | None, step: str) -> NoReturn:
        """Raise that a step is not possible where its session stands; nothing was sent or kept."""
        raise WrongTransition(message, next_step=next_step, step=step, session_id=session_id)
