"""Answering what a run asks: one answer per resuming action, by one request, noted before and after.

The input names a run and no question, so the decision about an answer keeps which question waited then, and only that
one gets the answer. Source: connector contract §18.2.5; design D25.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from aip_hermes.contract.handler import Call, Description
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.failures import HermesFailed, OperatorPolicyRefused, OperatorStateFailed
from aip_hermes.hermes.operator.binding import MAX_COMMANDS, Binding, Bindings, Command, CommandState
from aip_hermes.hermes.operator.following import Lost
from aip_hermes.hermes.operator.ground import Ground

__all__ = ["question_of", "resumed"]

_APPROVAL_S: Final = 30.0
_OTHER: Final = "its run asks something else than what was decided on"
_PENDING: Final = frozenset({"claimed", "applied"})


async def question_of(ground: Ground, call: Call, bindings: Bindings) -> Description:
    """Return which question an answer is for, as it waits now.

    Raises: HermesFailed, certain, where none waits; ActionFailed of the store.
    """
    source_id = call.input["resume"]["source_action_id"]
    binding = _usable(ground, call, await bindings.read(source_id), source_id)
    _refuse_unless_waiting(ground, call, binding)
    asked_at = await _asked_at(ground, call, binding)
    snapshot = {
        "source_action_id": binding.action_id,
        "run_id": binding.run_id,
        "approval_generation": binding.approval_generation,
        "asked_at": asked_at,
        "question_sha256": (binding.pending_approval or {}).get("sha256"),
    }
    summary = f"It answers question {binding.approval_generation} of run {binding.run_id} (action {binding.action_id})."
    return Description(snapshot=snapshot, summary=summary)


async def resumed(
    ground: Ground, call: Call, bindings: Bindings, *, decided: Mapping[str, Any] | None
) -> tuple[Binding, Command]:
    """Return the binding of the source and this action's answer, given now or before.

    decided: the snapshot that released this call; None where nobody had to decide.
    Raises: HermesFailed, certain; Lost where the answer may have arrived.
    """
    source_id = call.input["resume"]["source_action_id"]
    while True:
        binding = _usable(ground, call, await bindings.read(source_id), source_id)
        command = binding.command_of(call.action_id)
        if command is None:
            if call.interrupted:
                raise _not_begun(ground, call)
            return await _answer(ground, call, bindings, binding, decided)
        if command.state == "applied":
            return binding, command
        if command.state == "rejected":
            raise _refused(ground, call, binding, "rejected", "the endpoint refused this answer before")
        if command.state == "outcome_unknown" or call.interrupted or command.instance_id != ground.instance_id:
            raise Lost("approval", "may have heard the answer to what the run asks")
        await ground.clock.sleep(ground.policy.poll_interval_ms / 1000)


def _usable(ground: Ground, call: Call, binding: Binding | None, source_id: str) -> Binding:
    """Return the source's binding. That of another endpoint or another caller is as unknown as one that never was."""
    mine = (str(ground.endpoint.id), str(call.actor.principal_id))
    if binding is None or (binding.endpoint_id, binding.principal_id) != mine:
        raise OperatorPolicyRefused(
            f"operator at Hermes endpoint {ground.endpoint.id} sent nothing: no run of yours belongs to action"
            f" {source_id}. Check `source_action_id`.",
            endpoint_id=ground.endpoint.id,
            details=ground.details(call, run_id=None, source_action_id=source_id, reason="binding_missing", sent=False),
        )
    return binding


async def _answer(
    ground: Ground, call: Call, bindings: Bindings, binding: Binding, decided: Mapping[str, Any] | None
) -> tuple[Binding, Command]:
    _refuse_unless_waiting(ground, call, binding, decided)
    asked_at = await _asked_at(ground, call, binding)
    if decided is not None and decided["asked_at"] != asked_at:
        # Somebody else answered at the endpoint, and it has asked the next one.
        raise _refused(ground, call, binding, "other_question", _OTHER)
    wanted = Command(
        action_id=str(call.action_id),
        choice=call.input["resume"]["choice"],
        generation=binding.approval_generation,
        state="claimed",
        instance_id=ground.instance_id,
        claimed_at=ground.clock.now_ms(),
        asked_at=asked_at,
    )

    def claim(found: Binding) -> Binding:
        # Raised from within the change, so that of two answers at once exactly one is given.
        _refuse_unless_waiting(ground, call, found, decided)
        return found.answered(wanted)

    await bindings.change(binding.action_id, claim)
    return await _give(ground, call, bindings, binding, wanted)


async def _asked_at(ground: Ground, call: Call, binding: Binding) -> float | None:
    """Return the endpoint's own time of the question that its run waits with; None where it says none.

    Raises: HermesFailed, certain, where the run waits for nothing or its status can't be read.
    """
    assert binding.run_id is not None  # noqa: S101 - who waits was started
    asked = ground.asked(call, mutation=False, run_id=binding.run_id)
    status = await ground.attempts.repeated(ground.read(binding.run_id), asked, deadline_ms=call.deadline_ms)
    if status.get("status") != "waiting_for_approval":
        raise _refused(ground, call, binding, "not_waiting", "its run waits for nothing any more")
    at = status.get("updated_at")
    return at if isinstance(at, int | float) else None


async def _give(
    ground: Ground, call: Call, bindings: Bindings, binding: Binding, command: Command
) -> tuple[Binding, Command]:
    members = {"choice": command.choice}
    if "resolve_all" in call.input["resume"]:
        members["resolve_all"] = call.input["resume"]["resolve_all"]
    request = ground.order(
        call,
        path="/approval",
        run_id=binding.run_id,
        body=json.dumps(members, separators=(",", ":")).encode(),
        timeout_s=_APPROVAL_S,
    )
    await ground.faults.reach("hermes.send.before")
    try:
        await ground.attempts.once(
            request, ground.asked(call, mutation=True, run_id=binding.run_id), deadline_ms=call.deadline_ms
        )
    except HermesFailed as failure:
        if failure.uncertain:
            raise Lost(
                "approval",
                "may have heard the answer to what the run asks",
                provider=failure.details.get("provider"),
            ) from failure
        await _note(bindings, binding, command, None if failure.frees_key else "rejected")
        raise
    await ground.faults.reach("hermes.send.after")
    applied = replace(command, state="applied")
    try:
        changed, _ = await bindings.change(
            binding.action_id,
            lambda found: replace(found.answered(applied), status="running", pending_approval=None),
        )
    except ActionFailed as failure:
        raise Lost("state", "heard the answer, which could not be noted") from failure
    await ground.faults.reach("hermes.operator.answered")
    return changed, applied


async def _note(bindings: Bindings, binding: Binding, command: Command, state: CommandState | None) -> None:
    """Keep how an answer ended; None forgets it, so that the same action may give it again."""

    def end(found: Binding) -> Binding:
        if state is not None:
            return found.answered(replace(command, state=state))
        others = tuple(each for each in found.approval_commands if each.action_id != command.action_id)
        return replace(found, approval_commands=others)

    await bindings.change(binding.action_id, end)


def _refuse_unless_waiting(
    ground: Ground, call: Call, binding: Binding, decided: Mapping[str, Any] | None = None
) -> None:
    if binding.status != "waiting_for_approval" or binding.run_id is None:
        raise _refused(ground, call, binding, "not_waiting", f"its run is `{binding.status}` and waits for nothing")
    if len(binding.approval_commands) >= MAX_COMMANDS:
        raise _refused(ground, call, binding, "too_many_answers", f"its run was answered {MAX_COMMANDS} times")
    generation = binding.approval_generation
    if decided is not None and decided["approval_generation"] != generation:
        raise _refused(ground, call, binding, "other_question", _OTHER)
    if any(each.generation == generation and each.state in _PENDING for each in binding.approval_commands):
        raise _refused(ground, call, binding, "answered", "another action answers its run already")


def _refused(ground: Ground, call: Call, binding: Binding, reason: str, why: str) -> OperatorPolicyRefused:
    return OperatorPolicyRefused(
        f"operator at Hermes endpoint {ground.endpoint.id} sent nothing for action {binding.action_id}: {why}."
        f" Query action {binding.action_id}, or read the run's status.",
        endpoint_id=ground.endpoint.id,
        details=ground.details(
            call,
            run_id=binding.run_id,
            source_action_id=binding.action_id,
            status=binding.status,
            reason=reason,
            sent=False,
        ),
    )


def _not_begun(ground: Ground, call: Call) -> OperatorStateFailed:
    return OperatorStateFailed(
        f"the server stopped before Hermes endpoint {ground.endpoint.id} heard the answer; nothing was sent:"
        " send the same action again",
        endpoint_id=ground.endpoint.id,
        details=ground.details(call, run_id=None, sent=False),
        retryable=True,
    )
