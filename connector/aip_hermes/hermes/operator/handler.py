"""The handler of rows that follow the run which they start (`follow: run`).

One action starts one run, or answers what an earlier action's run asks, and follows it to its end or to the next
question. Source: connector contract §8.7, §18.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aip_hermes.contract.handler import (
    Answer,
    Call,
    Description,
    JsonObject,
    Prepared,
    Publish,
    SerialKey,
    State,
    Traces,
    stateless,
    unpublished,
)
from aip_hermes.contract.operation import Operation
from aip_hermes.contract.reconciliation import Uncertain, Verdict
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.admission import refuse_unusable
from aip_hermes.hermes.failures import (
    HermesFailed,
    InputRefused,
    OperatorOutcomeUnknown,
    OperatorPolicyRefused,
    OperatorStateFailed,
)
from aip_hermes.hermes.operator.binding import Binding, Bindings
from aip_hermes.hermes.operator.following import Followed, Lost, RunEnd, follow, told_again
from aip_hermes.hermes.operator.ground import Ground
from aip_hermes.hermes.operator.objective import Unusable, session_id_of, start_body
from aip_hermes.hermes.operator.outcome import bound_to, outcome_of
from aip_hermes.hermes.operator.resuming import question_of, resumed
from aip_hermes.hermes.operator.starting import started
from aip_hermes.hermes.reconcile import Reconciler
from aip_hermes.hermes.traces import traces_of
from aip_hermes.wire import sha256_hex

__all__ = ["OperatorHandler"]


@dataclass(slots=True)
class _Live:
    """An action whose `send` is under way here. source_id: whose run it is. started: the run has an id, or never will.
    asked: it is to be stopped. over: `send` has its outcome."""

    source_id: str
    run_id: str | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class OperatorHandler:
    """Starts, follows, resumes and stops runs for one endpoint."""

    def __init__(self, ground: Ground, *, reconciler: Reconciler) -> None:
        self._ground = ground
        self._reconciler = reconciler
        self._live: dict[tuple[str | None, str], _Live] = {}

    @property
    def operation(self) -> Operation:
        return self._ground.operation

    def check(self, call: Call) -> None:
        ground, endpoint_id = self._ground, self._ground.endpoint.id
        refuse_unusable(ground.endpoint, ground.operation, call)
        if "resume" in call.input:
            return
        outside = [
            each for each in call.input.get("candidate_capabilities", ()) if not ground.policy.allows_capability(each)
        ]
        if outside:
            raise OperatorPolicyRefused(
                f"operator at Hermes endpoint {endpoint_id} sent nothing: {len(outside)} of the candidate capabilities"
                " are outside of what its policy allows. Leave them out, or let the settings allow them.",
                endpoint_id=endpoint_id,
                details=ground.details(call, run_id=None, reason="capability_not_allowed", sent=False),
            )
        try:
            start_body(call, endpoint_id=endpoint_id, policy=ground.policy)
        except Unusable as exc:
            raise InputRefused(
                f"operator at Hermes endpoint {endpoint_id} was not sent: {exc}. Correct the input and send it again.",
                endpoint_id=endpoint_id,
            ) from None

    def serial_key(self, call: Call) -> SerialKey | None:
        return None  # a run speaks in a session of its own

    async def describe(self, call: Call, *, state: State = stateless) -> Description | None:
        if "resume" not in call.input:
            return None  # what is decided about is the objective, and stands in the input
        return await question_of(self._ground, call, Bindings(state, now_ms=self._ground.clock.now_ms))

    async def context(self, call: Call) -> JsonObject | None:
        return None

    async def prepare(self, call: Call, described: Mapping[str, Any] | None) -> Prepared:
        wanted: JsonObject = {"sent_sha256": sha256_hex(call.input)}
        if "resume" in call.input:
            wanted["source_action_id"] = call.input["resume"]["source_action_id"]
        else:
            wanted["session_id"] = session_id_of(call.action_id)
        facts = {"endpoint_id": str(self._ground.endpoint.id), "wanted": wanted}
        return Prepared(facts=facts, context=described)

    async def send(
        self, call: Call, prepared: Prepared, *, publish: Publish = unpublished, state: State = stateless
    ) -> Answer:
        bindings = Bindings(state, now_ms=self._ground.clock.now_ms)
        address = (call.actor.tenant_id, str(call.action_id))
        source_id = call.input.get("resume", {}).get("source_action_id", str(call.action_id))
        live = self._live.setdefault(address, _Live(source_id=source_id))
        try:
            try:
                return await self._run(call, prepared, bindings, live, publish)
            except Lost as lost:
                raise await self._unknown(call, bindings, live, lost) from lost
        except HermesFailed:
            raise
        except ActionFailed as failure:
            raise self._state_failed(call, live, failure) from failure
        finally:
            live.started.set()
            live.over.set()
            if self._live.get(address) is live:
                del self._live[address]

    async def confirm(self, call: Call, prepared: Prepared, outcome: Answer | ActionFailed) -> Answer | ActionFailed:
        return outcome

    async def reconcile(self, action: Uncertain) -> Verdict:
        return await self._reconciler.verdict(action)

    def traces(self, call: Call, outcome: Answer | ActionFailed | None) -> Traces:
        ground = self._ground
        own = None if "resume" in call.input else session_id_of(call.action_id)
        output = None if outcome is None else outcome.output
        return traces_of(ground.operation, endpoint_id=ground.endpoint.id, ids={}, session_id=own, output=output)

    async def cancel(self, call: Call, prepared: Prepared, *, state: State = stateless) -> JsonObject:
        live = self._live.get((call.actor.tenant_id, str(call.action_id)))
        if live is None:
            return {"stopped": False, "note": "no run of the action is followed here"}
        ground = self._ground
        grace_s = ground.policy.cancel_grace_ms / 1000
        if not await _within(ground, grace_s, live.started) or live.run_id is None:
            return {"stopped": False, "note": "the run has not been named yet, so it can't be stopped; read the action"}
        noted = await self._ask_to_cancel(Bindings(state, now_ms=ground.clock.now_ms), live)
        if not noted:
            return {"stopped": False, "note": "the run was over", "ended": True}
        said = await self._stop(call, live.run_id)
        live.asked.set()
        ended = await _within(ground, grace_s + 1, live.over)
        return said | {"ended": ended}

    async def _run(self, call: Call, prepared: Prepared, bindings: Bindings, live: _Live, publish: Publish) -> Answer:
        ground, answered, answered_at = self._ground, False, None
        if "resume" in call.input:
            binding, command = await resumed(ground, call, bindings, decided=prepared.context)
            answered, answered_at = True, command.asked_at
        else:
            binding = await started(ground, call, bindings)
        if binding.terminal or binding.status == "waiting_for_approval" or binding.run_id is None:
            return outcome_of(ground, call, binding, provider=await self._told(call, binding))
        live.run_id = binding.run_id
        live.started.set()

        async def note(event: str | None, sequence: int) -> None:
            # Only what a new start would need; that it is missing changes nothing about the run.
            with contextlib.suppress(ActionFailed):
                await bindings.change(
                    live.source_id,
                    lambda found: (
                        None
                        if found.terminal
                        else replace(found, last_event=event, next_sequence=max(sequence, found.next_sequence))
                    ),
                )

        end = await follow(
            ground,
            Followed(
                call=call,
                run_id=binding.run_id,
                publish=publish,
                note=note,
                asked=live.asked,
                sequence=binding.next_sequence,
                answered=answered,
                answered_at=answered_at,
            ),
        )
        return await self._ended(call, bindings, binding, end)

    async def _ended(self, call: Call, bindings: Bindings, binding: Binding, end: RunEnd) -> Answer:
        """Keep the end in the binding and return what it means."""
        ground = self._ground
        try:
            kept, _ = await bindings.change(binding.action_id, lambda found: bound_to(ground, call, found, end))
        except ActionFailed as failure:
            if end.status == "waiting_for_approval":
                raise Lost("state", "asks for an approval, which could not be noted") from failure
            # The run is over whatever the store says, and its end is in hand.
            kept = bound_to(ground, call, binding, end) or binding
        provider = end.provider if kept.status == end.status else await self._told(call, kept)
        return outcome_of(ground, call, kept, pending=end.pending, provider=provider)

    async def _told(self, call: Call, binding: Binding) -> JsonObject | None:
        """Return what the endpoint says of an end that was kept, which holds no text of it."""
        if binding.run_id is None or binding.status not in ("completed", "failed", "cancelled"):
            return None
        return await told_again(self._ground, call, run_id=binding.run_id, status=binding.status)

    async def _unknown(self, call: Call, bindings: Bindings, live: _Live, lost: Lost) -> OperatorOutcomeUnknown:
        """Close the run's binding as unknown, with what answered it, and return the failure."""
        ground = self._ground
        failure = OperatorOutcomeUnknown(
            f"Hermes endpoint {ground.endpoint.id} {lost.sentence}. Nothing is sent again: query action"
            f" {live.source_id} and read the run at the endpoint before you ask for anything like it.",
            endpoint_id=ground.endpoint.id,
            provider=lost.provider,
            details=ground.details(call, run_id=live.run_id, source_action_id=live.source_id, reason=lost.reason),
            uncertain=True,
        )
        error = {"code": failure.code, "message": failure.message, "reason": lost.reason}

        def close(found: Binding) -> Binding | None:
            if found.terminal:
                return None
            command = found.command_of(call.action_id)
            if command is not None and command.state == "claimed":
                found = found.answered(replace(command, state="outcome_unknown"))
            return replace(found, status="outcome_unknown", error=error, pending_approval=None)

        with contextlib.suppress(ActionFailed):
            kept, _ = await bindings.change(live.source_id, close)
            failure.details["run_id"] = kept.run_id
        return failure

    def _state_failed(self, call: Call, live: _Live, failure: ActionFailed) -> HermesFailed:
        ground = self._ground
        return OperatorStateFailed(
            f"operator at Hermes endpoint {ground.endpoint.id} sent nothing: the binding of its run could not be stored"
            " or read. Send the action again when the store works.",
            endpoint_id=ground.endpoint.id,
            details=ground.details(call, run_id=live.run_id, reason=failure.code, sent=False),
        )

    async def _ask_to_cancel(self, bindings: Bindings, live: _Live) -> bool:
        """Note that the run is to be stopped; False where it is over."""

        def ask(found: Binding) -> Binding | None:
            return None if found.terminal else replace(found, cancel_requested=True, status="cancelling")

        try:
            return (await bindings.change(live.source_id, ask))[1]
        except ActionFailed:
            return True  # stopping is what was asked for; that it was is then said by the result alone

    async def _stop(self, call: Call, run_id: str) -> JsonObject:
        ground = self._ground
        asked = ground.asked(call, mutation=True, run_id=run_id)
        try:
            await ground.attempts.once(ground.stop(run_id), asked, deadline_ms=None)
        except HermesFailed as failure:
            if failure.details["remote_status"] == 404:
                return {"stopped": False, "note": "Hermes knows no such run any more: it was over"}
            return {
                "stopped": False,
                "note": f"Hermes was asked to stop the run and did not confirm it: {failure.code}",
            }
        return {"stopped": True, "note": "Hermes was asked to stop the run and took the request"}


async def _within(ground: Ground, seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event, at most so long; whether it came."""
    coming = asyncio.ensure_future(event.wait())
    bell = asyncio.ensure_future(ground.clock.sleep(seconds))
    try:
        await asyncio.wait((coming, bell), return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        for task in (coming, bell):
            task.cancel()
        await asyncio.gather(coming, bell, return_exceptions=True)
