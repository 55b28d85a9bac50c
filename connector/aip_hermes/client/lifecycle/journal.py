"""What a lifecycle keeps of its steps, in the store of identities: enough for another process to go on.

An Action ID is a function of lifecycle, step and attempt. So two processes that run one step send one action, which the
server carries out once (design D3), and a process that died after deciding to send finds the same ID again. No text is
kept: hashes, ids and counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from aip_hermes import wire
from aip_hermes.client.identities import IdentityStore
from aip_hermes.client.lifecycle.failures import StepChanged, WrongTransition
from aip_hermes.ids import ActionId, EndpointId, HermesSessionId, HermesSessionKey, IdempotencyKey, PrincipalId

__all__ = ["Journal", "Plan", "State"]

State = Literal["planned", "failed", "not_applied", "done"]

_BEGUN: Final = "begun"
_BEFORE: Final = "before:"
_STEP: Final = "step:"
_MOVED: Final = "moved:"
_KEY: Final = "session_key:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One step. content: SHA-256 of what it wants. before: what was read before it was first sent. found: what was
    verified. stuck: why it does not go on: `{"code", "message", "next_step"}`. decisions: of persons, oldest first."""

    step: str
    operation: str
    content: str
    attempt: int = 1
    state: State = "planned"
    action_id: ActionId
    idempotency_key: IdempotencyKey
    session_id: HermesSessionId | None = None
    new_session_id: HermesSessionId | None = None
    before: Mapping[str, Any] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)
    stuck: Mapping[str, Any] | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()

    def wire(self) -> dict[str, Any]:
        """Return it as JSON."""
        names = ("operation", "content", "attempt", "state", "session_id", "new_session_id", "stuck")
        plain = {name: getattr(self, name) for name in names}
        return {
            **plain,
            "before": dict(self.before),
            "found": dict(self.found),
            "decisions": [dict(each) for each in self.decisions],
        }


class Journal:
    """The steps of one lifecycle of one principal at one endpoint. Raises, from each method: IdentityStoreFailed."""

    def __init__(self, store: IdentityStore, *, endpoint: EndpointId, principal_id: PrincipalId, name: str) -> None:
        self._store = store
        self._principal_id = principal_id
        self.group = f"lifecycle:{endpoint}:{name}"
        self._seed = [str(principal_id), str(endpoint), name]

    async def begin(self, *, server: str) -> None:
        """Keep where and as whom the lifecycle runs. Raises: WrongTransition where it was begun elsewhere: another
        server or principal would know none of its actions and carry them out again."""
        here = {"server": server, "principal_id": str(self._principal_id)}
        begun = (await self._store.recall(group=self.group)).get(_BEGUN)
        if begun is None:
            await self._store.remember(group=self.group, name=_BEGUN, value=here)
        elif begun != here:
            raise WrongTransition(
                f"the lifecycle {self.group} was begun at {begun['server']} as {begun['principal_id']}",
                next_step="go on there and as that principal, or give the lifecycle another name",
            )

    def fresh(
        self,
        *,
        step: str,
        operation: str,
        content: str,
        session_id: HermesSessionId | None,
        new_session_id: HermesSessionId | None,
    ) -> Plan:
        """Return the plan of a step that was never begun. Nothing is kept yet."""
        action_id, key = self._identities(step, 1)
        return Plan(
            step=step,
            operation=operation,
            content=content,
            action_id=action_id,
            idempotency_key=key,
            session_id=session_id,
            new_session_id=new_session_id,
        )

    def again(self, plan: Plan) -> Plan:
        """Return the next attempt: the same step under a new Action ID and a new key, with nothing read yet."""
        attempt = plan.attempt + 1
        action_id, key = self._identities(plan.step, attempt)
        return replace(
            plan,
            attempt=attempt,
            state="planned",
            action_id=action_id,
            idempotency_key=key,
            before={},
            found={},
            stuck=None,
        )

    async def keep(self, plan: Plan) -> Plan:
        """Keep a step as it stands now, and return it."""
        await self._store.remember(group=self.group, name=_STEP + plan.step, value=plan.wire())
        return plan

    async def keep_before(self, plan: Plan, read: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep what was read before an attempt is first sent, and return what stands: of two who read, the first."""
        name = f"{_BEFORE}{plan.attempt}:{plan.step}"
        kept: Mapping[str, Any] = await self._store.remember_first(group=self.group, name=name, value=dict(read))
        return kept

    async def plan(self, step: str, *, operation: str | None = None, content: str | None = None) -> Plan | None:
        """Return a step, or None. Raises: StepChanged where it was begun with something else."""
        kept = (await self._store.recall(group=self.group)).get(_STEP + step)
        if kept is None:
            return None
        plan = self._plan(step, kept)
        if operation is not None and (plan.operation, plan.content) != (operation, content):
            raise StepChanged(
                f"step {step!r} was begun as another {plan.operation}; nothing was sent",
                next_step="give what is new a new step name; repeat a step exactly as it was",
                step=step,
                action_id=plan.action_id,
                session_id=plan.session_id,
            )
        return plan

    async def plans(self) -> list[Plan]:
        """Return every step, by name."""
        kept = await self._store.recall(group=self.group)
        return [self._plan(name.removeprefix(_STEP), kept[name]) for name in sorted(kept) if name.startswith(_STEP)]

    async def moved(self, *, old: HermesSessionId, new: HermesSessionId) -> None:
        """Keep that a session goes on under another id: a proven compression."""
        await self._store.remember(group=self.group, name=_MOVED + old, value=str(new))

    async def current(self, session_id: HermesSessionId) -> HermesSessionId:
        """Return the id under which a session goes on, as far as it was adopted."""
        kept = await self._store.recall(group=self.group)
        seen: set[str] = set()
        while _MOVED + session_id in kept and session_id not in seen:
            seen.add(session_id)
            session_id = HermesSessionId(kept[_MOVED + session_id])
        return session_id

    async def keep_session_key(self, *, session_id: HermesSessionId, session_key: HermesSessionKey | None) -> None:
        """Keep which memory scope the turns of a session name."""
        if session_key is not None:
            await self._store.remember(group=self.group, name=_KEY + session_id, value=str(session_key))

    async def session_key(self, session_id: HermesSessionId) -> HermesSessionKey | None:
        """Return the memory scope of a session."""
        kept = (await self._store.recall(group=self.group)).get(_KEY + session_id)
        return None if kept is None else HermesSessionKey(kept)

    def _identities(self, step: str, attempt: int) -> tuple[ActionId, IdempotencyKey]:
        seed = wire.canonical_json([*self._seed, step, attempt])
        mark = hashlib.sha256(seed).hexdigest()[:32]
        return ActionId(f"act_{mark}"), IdempotencyKey(f"key_{mark}")

    def _plan(self, step: str, kept: Mapping[str, Any]) -> Plan:
        action_id, key = self._identities(step, kept["attempt"])
        return Plan(
            step=step,
            operation=kept["operation"],
            content=kept["content"],
            attempt=kept["attempt"],
            state=kept["state"],
            action_id=action_id,
            idempotency_key=key,
            session_id=_session(kept["session_id"]),
            new_session_id=_session(kept["new_session_id"]),
            before=kept["before"],
            found=kept["found"],
            stuck=kept["stuck"],
            decisions=tuple(kept["decisions"]),
        )


def _session(value: str | None) -> HermesSessionId | None:
    return None if value is None else HermesSessionId(value)
