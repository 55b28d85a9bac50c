"""The life of Hermes sessions as one API: each step is verified by reads, and a process that dies can be replaced.

A program is written once, from its first step to its last. Run again, by whoever has the file of identities, each step
that is done answers from what was kept, the one that was interrupted is looked up, and the rest is carried out.
Source: design §5, D13–D16, D20; issue 5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.lifecycle import deleting, forking, rows, states, turning
from aip_hermes.client.lifecycle.carrying import Carrier
from aip_hermes.client.lifecycle.discovering import discovered
from aip_hermes.client.lifecycle.failures import CapabilityMissing, SessionClosed, WrongTransition
from aip_hermes.client.lifecycle.footing import Footing
from aip_hermes.client.lifecycle.journal import Journal, Plan
from aip_hermes.client.lifecycle.reading import SessionReads
from aip_hermes.client.lifecycle.telling import OnText, telling
from aip_hermes.ids import EndpointId, HermesSessionId, HermesSessionKey
from aip_hermes.ports import Clock, Faults, NoFaults, SystemClock

__all__ = ["SessionLifecycle"]

_PRIMARY: Final = EndpointId("primary")
_DEFAULT: Final = states.LifecyclePolicy()


class SessionLifecycle:
    """One walk through the life of some sessions of one endpoint.

    client: with a store of identities; borrowed, as its store. name: of this walk; the same name goes on with it, in
    this process or another one. Steps are named too: a turn and a rename by the caller, the others after the session
    that they make or end. A step of one name has one content.

    Every method raises LifecycleError (see `client.lifecycle.failures`), IdentityStoreFailed before anything is sent,
    and the failures of AipClient for reads.
    """

    def __init__(
        self,
        client: AipClient,
        *,
        name: str,
        endpoint: EndpointId = _PRIMARY,
        policy: states.LifecyclePolicy = _DEFAULT,
        clock: Clock | None = None,
        faults: Faults | None = None,
    ) -> None:
        if client.store is None:
            raise ValueError("a lifecycle needs a client with a store of identities: AipClient(store=…)")
        if not name.strip() or not name.isprintable():
            raise ValueError("a lifecycle has a printable name")
        self._client = client
        self._store = client.store
        self._name = name
        self._endpoint = endpoint
        self._policy = policy
        self._clock = clock or SystemClock()
        self._faults = faults or NoFaults()
        self._discovered: states.Discovered | None = None
        self._ready: Footing | None = None

    async def discover(self) -> states.Discovered:
        """Ask the server who this is and what the endpoint offers. Every step does so first, once.

        Raises: CapabilityMissing; WrongTransition where the lifecycle was begun at another server or by another
        principal.
        """
        if self._discovered is None:
            self._discovered = await discovered(self._client, endpoint=self._endpoint)
        if self._ready is None:
            self._ready = await self._made(self._discovered)
        return self._discovered

    async def create(
        self,
        session_id: HermesSessionId,
        *,
        title: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
        session_key: HermesSessionKey | None = None,
        step: str | None = None,
    ) -> states.OpenSession:
        """Create a session under an id of the caller's; its exact row and its entry in the list were read then.

        session_key: the memory scope of its turns; None sends none.
        """
        members = {"title": title, "model": model, "system_prompt": system_prompt}
        return await rows.create(
            await self._footing(),
            session_id=session_id,
            members={name: value for name, value in members.items() if value is not None},
            session_key=session_key,
            step=step or f"create:{session_id}",
        )

    async def find(self, session_id: HermesSessionId) -> states.OpenSession | states.ClosedSession | None:
        """Return the handle of a session that is there, made here or elsewhere; None where the endpoint has no row."""
        footing = await self._footing()
        row = await footing.reads.find(session_id)
        if row is None:
            return None
        return states.handle_of(row, session_key=await footing.journal.session_key(session_id))

    async def chat(
        self,
        session: states.OpenSession,
        message: Any,
        *,
        step: str,
        system_message: str | None = None,
        confirm_effects: states.ConfirmEffects | None = None,
    ) -> states.VerifiedTurn:
        """Run one turn. Go on with `session` of what it returns: after a proven compression it has another id.

        message: a text, or a list of text and image parts. confirm_effects: the application's own look at the systems
        that the turn may have changed; the step is done only when it says yes.
        """
        return await turning.chat(
            await self._footing(),
            session=session,
            message=message,
            system_message=system_message,
            step=step,
            confirm_effects=confirm_effects,
        )

    async def chat_stream(
        self,
        session: states.OpenSession,
        message: Any,
        *,
        step: str,
        on_text: OnText | None = None,
        system_message: str | None = None,
        confirm_effects: states.ConfirmEffects | None = None,
    ) -> states.VerifiedTurn:
        """Run one turn whose reply is told as it comes; it is verified exactly as `chat`, and resumed as every step.

        on_text: told each piece of the reply, in order. They are no proof, and may be told again from the first by
        whoever takes the turn over; a step that is done tells nothing and returns the reply. Raises: CapabilityMissing.
        """
        found = await self.discover()
        if not found.streams:
            raise CapabilityMissing(
                f"endpoint {self._endpoint} offers no streaming chat, or not to this principal",
                next_step="use `chat`, or have the server offer session_chat_stream",
                details={"missing": ["session_chat_stream"]},
            )
        return await turning.chat(
            await self._footing(),
            session=session,
            message=message,
            system_message=system_message,
            step=step,
            confirm_effects=confirm_effects,
            way=turning.Way(
                operation="session_chat_stream",
                mode="streaming",
                attended=lambda action_id: telling(self._client, action_id, on_text, clock=self._clock),
            ),
        )

    async def messages(self, session: states.OpenSession | states.ClosedSession) -> states.ActiveMessages:
        """Read the active messages, and adopt the id of a continuation where it is proven to be one."""
        return await turning.messages(await self._footing(), session=session)

    async def rename(self, session: states.OpenSession | states.ClosedSession, title: str | None, *, step: str) -> None:
        """Change the title and read it back; None clears it."""
        await rows.rename(await self._footing(), session_id=session.id, title=title, step=step)

    async def fork(
        self,
        session: states.OpenSession | states.ClosedSession,
        child_id: HermesSessionId,
        *,
        title: str | None = None,
        session_key: HermesSessionKey | None = None,
        step: str | None = None,
    ) -> states.Forked:
        """Fork a session, which ends it; both sides were read then. Warns SharedSessionKey where both have one key."""
        return await forking.fork(
            await self._footing(),
            source=session,
            child_id=child_id,
            title=title,
            session_key=session_key,
            step=step or f"fork:{child_id}",
        )

    async def close(self, session: states.OpenSession, *, reason: str, step: str | None = None) -> states.ClosedSession:
        """End a session. No turn follows, unless the policy allows it: see `allow_turns`."""
        return await rows.close(
            await self._footing(), session=session, reason=reason, step=step or f"close:{session.id}"
        )

    def allow_turns(self, session: states.ClosedSession) -> states.OpenSession:
        """Return a closed session as one that takes turns, which Hermes does. Raises: SessionClosed, by the policy."""
        if self._policy.turns_after_close == "refuse":
            raise SessionClosed(
                f"session {session.id} was closed as {session.reason!r}, and the policy lets no turn follow",
                next_step="fork it, or create another one; or let the policy say turns_after_close='allow'",
                session_id=session.id,
            )
        return states.OpenSession(id=session.id, session_key=session.session_key)

    async def request_delete(
        self, session: states.OpenSession | states.ClosedSession, *, step: str | None = None
    ) -> states.DeleteRequested:
        """Ask for the deletion of a session; another principal decides about it."""
        return await deleting.request_delete(
            await self._footing(), session=session, step=step or f"delete:{session.id}"
        )

    async def await_decision(self, request: states.DeleteRequested, *, timeout_s: float) -> states.DeleteDecided:
        """Wait for the decision and for what it releases. Raises: DecisionPending after the time, DecisionDenied."""
        return await deleting.await_decision(await self._footing(), self._client, request=request, timeout_s=timeout_s)

    async def confirm_deleted(self, decided: states.DeleteDecided) -> states.DeleteConfirmed:
        """Read what is left: no row, no child that names it, its parent untouched."""
        return await deleting.confirm_deleted(await self._footing(), decided=decided)

    async def steps(self) -> list[states.StepView]:
        """Return where every step stands, as it was kept; nothing is asked of the endpoint."""
        plans = await (await self._footing()).journal.plans()
        return [_view(plan) for plan in plans]

    async def decide(self, step: str, *, outcome: Literal["again", "applied"], by: str, reason: str) -> states.StepView:
        """Keep what a person decided about a step that does not go on by itself.

        again: run next, the step is sent under a new Action ID. applied: it counts as done as it stands. Possible only
        where the step said so: after StepFailed and NotApplied `again`; after PartlyApplied, Undecided, NotVerified
        both. by, reason: kept with it. Raises: WrongTransition.
        """
        journal = (await self._footing()).journal
        plan = await journal.plan(step)
        if plan is None or outcome not in _choices(plan):
            raise WrongTransition(
                f"step {step!r} is {'not begun' if plan is None else plan.state}; it can't be decided {outcome!r}",
                next_step="run the step first: it says what it needs",
                step=step,
                action_id=None if plan is None else plan.action_id,
            )
        decision = {"outcome": outcome, "by": by, "reason": reason, "at": self._clock.now_ms(), "about": plan.stuck}
        made = journal.again(plan) if outcome == "again" else replace(plan, state="done", stuck=None)
        return _view(await journal.keep(replace(made, decisions=(*plan.decisions, decision))))

    async def _footing(self) -> Footing:
        if self._ready is None:
            await self.discover()
        assert self._ready is not None  # noqa: S101 - made by discover
        return self._ready

    async def _made(self, found: states.Discovered) -> Footing:
        journal = Journal(self._store, endpoint=self._endpoint, principal_id=found.principal_id, name=self._name)
        await journal.begin(server=self._client.origin)
        return Footing(
            reads=SessionReads(
                self._client.call,
                endpoint=self._endpoint,
                page_size=self._policy.page_size,
                rounds=self._policy.rounds,
            ),
            journal=journal,
            carrier=Carrier(
                self._client, store=self._store, journal=journal, clock=self._clock, wait_s=self._policy.wait_s
            ),
            policy=self._policy,
            faults=self._faults,
        )


def _choices(plan: Plan) -> tuple[str, ...]:
    if plan.state in ("failed", "not_applied"):
        return ("again",)
    return ("again", "applied") if plan.state == "planned" and plan.stuck is not None else ()


def _view(plan: Plan) -> states.StepView:
    stuck = plan.stuck or {}
    return states.StepView(
        step=plan.step,
        operation=plan.operation,
        state=plan.state,
        attempt=plan.attempt,
        action_id=plan.action_id,
        session_id=plan.session_id or plan.new_session_id,
        why=stuck.get("message"),
        next_step=stuck.get("next_step") or ("nothing: it is done" if plan.state == "done" else "run the step again"),
    )
