"""Any order of submissions, repeats, decisions, cancels, crashes and restarts, against a small model of the rules.

A crash takes the store as it is in that moment; whatever the old runtime would still do counts nowhere, as if its
process were gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.runtime import Authorities, MessageContext, Runtime
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_connector import (
    ScriptedConnector,
    ScriptedCredential,
    ScriptedOutcomeUnknown,
    ScriptedRejected,
    ScriptedTemporary,
)
from tests.support.runtime_rules import POINTS, Answered, Kept, Model, Outcome, Request
from tests.support.runtime_site import Crash, action, authority, decision, requester, reviewer

T = TypeVar("T")

PATIENCE_S = 30
UNDER_WAY = ("queued", "running", "pending_approval")

STEPS = 50
RUNS = 54  # 35 to 45 steps each
AT_LEAST = 2_000

OPERATIONS = ("session_create", "session_chat", "session_fork", "session_delete")
KEYED = ("session_create", "session_fork", "session_delete")
OWNER = requester(scopes=frozenset({"action:read", "action:write", "approval:read"}))

SESSIONS = st.sampled_from(("s1", "s2"))
KEYS = st.sampled_from(("K1", "K2", "K3"))
VERBS = st.sampled_from(("approved", "approved", "denied"))
requests = st.builds(
    lambda operation, session, key, queued: Request(
        action_id="", operation=operation, session=session,
        key=key if operation in KEYED else None, queued=queued and operation == "session_chat",
    ),
    st.sampled_from(OPERATIONS), SESSIONS, KEYS, st.booleans(),
)  # fmt: skip
outcomes = st.sampled_from(("completed", "completed", "temporary", "credential", "rejected", "uncertain"))
points = st.sampled_from(POINTS)

FAILURES: dict[str, ActionFailed] = {
    "temporary": ScriptedTemporary("refused"),
    "credential": ScriptedCredential("no key"),
    "rejected": ScriptedRejected("no"),
    "uncertain": ScriptedOutcomeUnknown("reset", uncertain=True),
}


@dataclass
class Process:
    """One run of a runtime on a store of its own, which is copied when it dies."""

    folder: Path
    clock: ManualClock
    script: list[Outcome]
    sends: list[Call]
    point: str | None = None
    dead: asyncio.Event = field(default_factory=asyncio.Event)
    runtime: Runtime | None = None

    @property
    def store(self) -> Path:
        return self.folder / "runtime.sqlite3"

    async def start(self) -> None:
        connector = ScriptedConnector(send=self.send, sends=self.sends, faults=self)
        self.runtime = await Runtime.open(
            store=self.store, catalog=Catalog(connector.offers()), connectors=[connector],
            authorities=Authorities((authority(),)), clock=self.clock, faults=self,
        )  # fmt: skip

    async def reach(self, point: str) -> None:
        """A fault port: dies once at the armed point, and then at every other."""
        if self.dead.is_set():
            raise Crash(point)
        if point == self.point:
            await asyncio.to_thread(self.copy_store)
            self.dead.set()
            raise Crash(point)

    def copy_store(self) -> None:
        """Take what a process finds that starts now."""
        after = self.folder / "after"
        after.mkdir(mode=0o700)
        with (
            contextlib.closing(sqlite3.connect(self.store)) as store,
            contextlib.closing(sqlite3.connect(after / self.store.name)) as copy,
        ):
            store.backup(copy)

    async def send(self, call: Call) -> Answer:
        """Play the provider."""
        outcome = self.script[0]
        if outcome != "completed":
            failure = FAILURES[outcome]
            raise type(failure)(failure.message, uncertain=failure.uncertain)
        return Answer(output={"object": "done"}, text=None)


class RuntimeMachine(RuleBasedStateMachine):
    """Rules are what clients, reviewers, operators and bad luck do; the invariant asks what became of it."""

    steps = 0
    """Taken by all machines."""

    @initialize()
    def begin(self) -> None:
        RuntimeMachine.steps -= 1  # what is checked next is no step
        self.loop = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="state-machine-"))
        self.clock = ManualClock()
        self.model = Model(now=self.clock.now_ms())
        self.script: list[Outcome] = ["completed"]
        self.sends: list[Call] = []
        self.made = 0
        self.seen: dict[str, Kept] = {}
        self.approvals: dict[str, wire.ApprovalRequest] = {}
        self.process = self.new_process(self.folder)
        self.run(self.process.start())

    def new_process(self, folder: Path) -> Process:
        return Process(folder=folder, clock=self.clock, script=self.script, sends=self.sends)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(4 * PATIENCE_S):
                return await work

        return self.loop.run(bounded())

    @property
    def runtime(self) -> Runtime:
        assert self.process.runtime is not None
        return self.process.runtime

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.seen = {}
            RuntimeMachine.steps -= 1  # nor is the last look
            try:
                self.what_changed_is_known()
            finally:
                self.run(self.runtime.aclose())
                self.loop.close()
                shutil.rmtree(self.folder)

    # What happens.

    @rule(request=requests, outcome=outcomes)
    def submit(self, request: Request, outcome: Outcome) -> None:
        self.send(self.fresh(**asdict(request)), outcome)

    @precondition(lambda self: self.model.actions)
    @rule(data=st.data(), outcome=outcomes)
    def duplicate(self, data: st.DataObject, outcome: Outcome) -> None:
        self.send(self.drawn(data).request, outcome)

    @precondition(lambda self: self.model.actions)
    @rule(data=st.data(), request=requests, outcome=outcomes)
    def change_under_the_same_id(self, data: st.DataObject, request: Request, outcome: Outcome) -> None:
        self.send(replace(request, action_id=self.drawn(data).request.action_id), outcome)

    @rule(request=requests, outcome=outcomes, point=points)
    def crash_in_a_submission(self, request: Request, outcome: Outcome, point: str) -> None:
        if request.queued and point == "after_claim":
            return  # it waits already, and a worker may be anywhere with it; that crash has a test of its own
        self.send(self.fresh(**asdict(request)), outcome, point=point)

    @precondition(lambda self: self.approvals)
    @rule(data=st.data(), verb=VERBS, outcome=outcomes)
    def decide(self, data: st.DataObject, verb: str, outcome: Outcome) -> None:
        self.send_decision(data.draw(st.sampled_from(sorted(self.approvals))), verb, outcome)

    @precondition(lambda self: self.approvals)
    @rule(data=st.data(), verb=VERBS, outcome=outcomes, point=points)
    def crash_in_a_decision(self, data: st.DataObject, verb: str, outcome: Outcome, point: str) -> None:
        self.send_decision(data.draw(st.sampled_from(sorted(self.approvals))), verb, outcome, point=point)

    @rule(session=SESSIONS, key=KEYS, verb=VERBS, outcome=outcomes, point=st.none() | points)
    def ask_and_decide(self, session: str, key: str, verb: str, outcome: Outcome, point: str | None) -> None:
        asked = self.fresh(operation="session_delete", session=session, key=key)
        self.send(asked, outcome)
        if asked.action_id in self.approvals:
            self.send_decision(asked.action_id, verb, outcome, point=point)

    @rule(session=SESSIONS, key=KEYS, outcome=outcomes, point=st.none() | points)
    def approve_while_a_turn_keeps_the_session_closed(
        self, session: str, key: str, outcome: Outcome, point: str | None
    ) -> None:
        self.send(self.fresh(operation="session_chat", session=session), "uncertain")
        self.pass_time("completed", 1)
        self.ask_and_decide(session, key, "approved", outcome, point)

    @precondition(lambda self: self.model.actions)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        action_id = self.drawn(data).request.action_id
        self.model.cancel(action_id)
        answered = self.run(self.runtime.cancel(action_id, OWNER))
        assert answered.status == result_status(self.model.actions[action_id])

    @rule(outcome=outcomes, halves=st.sampled_from((1, 2, 192)))
    def pass_time(self, outcome: Outcome, halves: int) -> None:
        """Half an approval's time, all of it, or a key's."""
        self.script[0] = outcome
        for _ in range(halves if halves < 3 else 1):
            ms = 450_000 * (1 if halves < 3 else halves)
            self.model.advance(ms, outcome)
            self.clock.advance(ms)
            self.run(self.all_known(self.model.actions))
            self.seen = {}

    @rule()
    def restart(self) -> None:
        self.run(self.runtime.aclose())
        self.process = self.new_process(self.process.folder)
        self.run(self.process.start())
        self.seen = {}

    # What must hold.

    @invariant()
    def what_changed_is_known(self) -> None:
        """Ask for what the model changed; for everything after a restart, a crash or a stretch of time,
        and at the end."""
        if not hasattr(self, "loop"):
            return
        RuntimeMachine.steps += 1
        changed = {
            action_id: kept for action_id, kept in self.model.actions.items() if self.seen.get(action_id) != kept
        }
        found, sent = self.run(self.all_known(changed)), Counter(str(call.action_id) for call in self.sends)
        for action_id, kept in changed.items():
            assert (*found[action_id], sent[action_id]) == (kept.state, kept.code, kept.uncertain, kept.sends), kept
        assert sent.total() == sum(kept.sends for kept in self.model.actions.values())
        self.seen = dict(self.model.actions)

    def fresh(self, **members: Any) -> Request:
        """Return a request under an Action ID of its own."""
        self.made += 1
        return Request(**members | {"action_id": f"act_{self.made}"})

    def drawn(self, data: st.DataObject) -> Kept:
        return self.model.actions[data.draw(st.sampled_from(sorted(self.model.actions)))]

    def send(self, request: Request, outcome: Outcome, *, point: str | None = None) -> None:
        owner = self.model.holder(request) or request.action_id
        if owner in self.model.actions and self.model.actions[owner].state == "queued":
            return  # it would wait, as it should, for time to pass
        self.script[0], self.process.point = outcome, point
        expected = self.model.submit(request, outcome, point=point)
        if expected.died:
            self.run(self.dies(self.submitted(request)))
        else:
            self.check(expected, self.run(self.submitted(request)))
        self.process.point = None
        self.run(self.note_approval(expected.owner))

    async def submitted(self, request: Request) -> wire.ActionResult | wire.Ack | str:
        try:
            return await self.runtime.submit(submission(request), OWNER, MessageContext())
        except RequestRefused as refusal:
            return refusal.code

    def check(self, expected: Answered, answered: wire.ActionResult | wire.Ack | str) -> None:
        if expected.owner is None:
            assert answered == expected.code
            return
        kept = self.model.actions[expected.owner]
        assert not isinstance(answered, str), (answered, kept)
        assert answered.action_id == expected.owner
        if isinstance(answered, wire.ActionResult):
            assert answered.status == result_status(kept)
            replayed = isinstance(answered.output, dict) and answered.output.get("idempotent_replay") is True
            assert replayed is expected.replay

    def send_decision(self, action_id: str, verb: str, outcome: Outcome, *, point: str | None = None) -> None:
        self.script[0], self.process.point = outcome, point
        expected = self.model.decide(action_id, verb, outcome, point=point)
        asked = self.approvals[action_id]
        given = decision(
            asked, decision=verb, decision_id=f"{asked.id}:{verb}", decided_at=wire.rfc3339(self.clock.now_ms())
        )
        if expected.died:
            self.run(self.dies(self.decided(given)))
        else:
            answered = self.run(self.decided(given))
            assert answered == expected.code, (answered, self.model.actions[action_id])
        self.process.point = None

    async def decided(self, given: wire.ApprovalDecision) -> str | None:
        try:
            await self.runtime.decide(given, reviewer())
        except RequestRefused as refusal:
            return refusal.code
        return None

    async def dies(self, work: Coroutine[Any, Any, object]) -> None:
        """Let a process die in its work, and start another on what it left."""
        try:
            answered = await work
            assert isinstance(answered, wire.Ack), answered
        except Crash:
            pass
        await self.process.dead.wait()
        await self.runtime.aclose()
        self.process = self.new_process(self.process.folder / "after")
        await self.process.start()
        self.seen = {}

    async def note_approval(self, action_id: str | None) -> None:
        if action_id is None or self.model.actions[action_id].state != "pending_approval":
            return
        status = await self.runtime.status(action_id, OWNER)
        assert status.approval_id is not None
        view = await self.runtime.approval(status.approval_id, reviewer())
        self.approvals[action_id] = view.request

    async def all_known(self, asked: Mapping[str, Kept]) -> dict[str, tuple[str, str | None, bool]]:
        """Return state, code and certainty of actions, after what goes on by itself: the queue, a released action, the
        end of an approval."""
        with contextlib.suppress(TimeoutError):  # what it became instead, the invariant says
            async with asyncio.timeout(PATIENCE_S):
                return await self.all_in(asked)
        return await self.all_in({action_id: replace(kept, state="any") for action_id, kept in asked.items()})

    async def all_in(self, asked: Mapping[str, Kept]) -> dict[str, tuple[str, str | None, bool]]:
        return dict(zip(asked, await asyncio.gather(*map(self.known, asked.values())), strict=True))

    async def known(self, kept: Kept) -> tuple[str, str | None, bool]:
        while True:
            status = await self.runtime.status(kept.request.action_id, OWNER, include_result=True)
            if kept.state in (status.state, "any") or status.state not in UNDER_WAY:
                break
            await asyncio.sleep(0)
        error = status.result.error if status.result is not None else None
        details = (error.details if error is not None else None) or {}
        return status.state, None if error is None else error.code, details.get("uncertain_outcome") is True


def submission(request: Request) -> wire.Action:
    inputs: dict[str, dict[str, Any]] = {
        "session_create": {"body": {"id": request.session}},
        "session_chat": {"session_id": request.session, "message": "hi"},
    }
    return action(
        request.operation,
        id=request.action_id,
        input=inputs.get(request.operation, {"session_id": request.session}),
        idempotency_key=request.key,
        mode="async" if request.queued else "sync",
    )


def result_status(kept: Kept) -> str:
    return "failed" if kept.state == "dead_lettered" else kept.state


@pytest.mark.requirement("runtime:rules:any-order")
def test_the_rules_hold_in_any_order() -> None:
    RuntimeMachine.steps = 0
    run_state_machine_as_test(RuntimeMachine, settings=settings(max_examples=RUNS, stateful_step_count=STEPS))
    assert RuntimeMachine.steps >= AT_LEAST
