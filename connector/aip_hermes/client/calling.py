"""One consequential call around its send: its identities before, its redacted answer after.

Nothing here sends. A certain failure of a first attempt settles its call; a lost answer leaves it open. What a later
attempt fails with says nothing about the earlier ones, so it leaves it open too. Source: design §1, §3 step 1, D1–D3,
D19.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

import structlog

from aip_hermes import wire
from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.identities import (
    CallIdentities,
    CallRecord,
    CallState,
    IdentityStore,
    IdentityStoreFailed,
    Instruction,
    endpoint_of,
)
from aip_hermes.client.reply import JsonObject
from aip_hermes.client.results import CallResult
from aip_hermes.ids import (
    ActionId,
    ApprovalId,
    CapabilityId,
    HermesSessionId,
    HermesSessionKey,
    IdempotencyKey,
    Identity,
    IdentityError,
)
from aip_hermes.redact import redact

__all__ = ["Ledger", "check_kinds", "check_place", "content_hash", "named", "naming", "planned", "with_identities"]

MAX_KEPT_BYTES: Final = 65_536
"""Of a redacted output; of a longer one its hash alone is kept."""

_LOOK_UP: Final = (
    "look {action_id} up before anything is sent: `client.resume(record)`, or its status and result; "
    "do not send it under a new Action ID"
)

_MAKERS: Final = frozenset({"session_row", "session_fork"})
"""How operations are reconciled that make a session under an id of the caller's."""

_I = TypeVar("_I", bound=Identity)
log = structlog.get_logger(__name__)


def check_kinds(**given: tuple[Any, type[Identity]]) -> None:
    """Raise TypeError for an identity of one kind in the place of another; a plain text may be any."""
    for name, (value, kind) in given.items():
        if isinstance(value, Identity) and not isinstance(value, kind):
            raise TypeError(f"{name} is a {kind.__name__}, and was given a {type(value).__name__}")


def check_place(capability_id: CapabilityId, new_session_id: HermesSessionId | None) -> None:
    """Raise ValueError for a new session's id in a call that is known to make none: the endpoint would ignore it."""
    if new_session_id is None or endpoint_of(capability_id) is None:
        return
    from aip_hermes.contract import load_operations  # not for every start of a client

    row = load_operations().get(capability_id.rpartition(":")[2])
    if row is not None and row.reconcile not in _MAKERS:
        raise ValueError(f"{row.name} makes no session, so that a new_session_id has no place in it")


def with_identities(
    input: Any,
    *,
    session_id: HermesSessionId | None,
    new_session_id: HermesSessionId | None,
    session_key: HermesSessionKey | None,
) -> Any:
    """Return `input` with the identities that were given apart from it, where its members have their places.

    Raises: ValueError for an identity that the input names otherwise, or has no place for.
    """
    given = {"session_id": session_id, "session_key": session_key}
    if all(value is None for value in (*given.values(), new_session_id)):
        return input
    if not isinstance(input, Mapping):
        raise ValueError("an input that is no object has no place for a session id or a session key")
    made = dict(input)
    for name, value in given.items():
        _put(made, name, value)
    if isinstance(made.get("body"), Mapping):
        made["body"] = dict(made["body"])
        _put(made["body"], "id", new_session_id)
    else:
        _put(made, "id", new_session_id)
    return made


def named(
    input: Any,
    *,
    action_id: ActionId,
    capability_id: CapabilityId,
    idempotency_key: IdempotencyKey | None,
) -> CallIdentities:
    """Return the identities of a call whose input is complete. What can't be an identity is left to the server."""
    endpoint = endpoint_of(capability_id)
    top: Mapping[str, Any] = input if isinstance(input, Mapping) else {}
    nested = top.get("body")
    inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else {}
    # In the inputs of Hermes' capabilities, and in no others, `id` is the session that is made.
    made = inner.get("id", top.get("id")) if endpoint is not None else None
    return CallIdentities(
        action_id=action_id,
        capability_id=capability_id,
        endpoint=endpoint,
        idempotency_key=idempotency_key,
        session_id=_identity(HermesSessionId, top.get("session_id", inner.get("session_id"))),
        new_session_id=_identity(HermesSessionId, made),
        session_key=_identity(HermesSessionKey, top.get("session_key", inner.get("session_key"))),
    )


def content_hash(
    input: Any,
    *,
    capability_id: CapabilityId,
    idempotency_key: IdempotencyKey | None,
    mode: ActionMode,
    extra: Mapping[str, Any] | None,
) -> str:
    """Return the SHA-256 of what makes two submissions of one Action ID the same."""
    content = {
        "capability_id": capability_id,
        "input": input,
        "idempotency_key": idempotency_key,
        "mode": mode,
        "extra": dict(extra or {}),
    }
    return wire.sha256_hex(content)


def planned(
    identities: CallIdentities,
    input: Any,
    *,
    server: str,
    mode: ActionMode,
    extra: Mapping[str, Any] | None,
    group: str | None,
    step: str | None,
) -> CallRecord:
    """Return the record of a call before its first send."""
    assert identities.capability_id is not None  # noqa: S101 - a call names its capability
    return CallRecord(
        action_id=identities.action_id,
        server=server,
        capability_id=identities.capability_id,
        endpoint=identities.endpoint,
        idempotency_key=identities.idempotency_key,
        session_id=identities.session_id,
        new_session_id=identities.new_session_id,
        session_key=identities.session_key,
        mode=mode,
        content_hash=content_hash(
            input,
            capability_id=identities.capability_id,
            idempotency_key=identities.idempotency_key,
            mode=mode,
            extra=extra,
        ),
        group=group,
        step=step,
    )


@contextmanager
def naming(identities: CallIdentities) -> Iterator[None]:
    """Let every failure of the block say which call it belongs to."""
    try:
        yield
    except ClientFailure as failure:
        failure.identities = failure.identities or identities
        raise


class Ledger:
    """Writes into a store of identities what a call is about to do and what became of it; into none, nothing."""

    def __init__(self, store: IdentityStore | None) -> None:
        self._store = store

    async def begin(self, record: CallRecord) -> CallRecord:
        """Keep a record before it is sent. Raises: IdentityStoreFailed, IdentityClash; then nothing may be sent."""
        return record if self._store is None else await self._store.begin(record)

    async def known(self, action_id: ActionId) -> CallRecord | None:
        """Return what is kept of an action."""
        return None if self._store is None else await self._store.call(action_id)

    async def answered(self, record: CallRecord, result: CallResult) -> CallResult:
        """Keep an answer. One that could not be kept is still an answer: `recorded` is False, the log says why.

        A verdict that was reached stands: the server's result of that action says uncertain for ever.
        """
        state, content = _state_of(result), _kept(result)
        verdict = (record.result or {}).get("reconciliation")
        if state == "uncertain" and verdict is not None:
            state, content["reconciliation"] = record.state, verdict
        kept = await self._keep(record, state=state, result=content)
        return replace(result, recorded=kept)

    async def failed(self, record: CallRecord, failure: ClientFailure) -> None:
        """Keep a failure and let it name the call and the next safe step."""
        failure.identities = record.identities
        if failure.uncertain:
            failure.next_step = _LOOK_UP.format(action_id=record.action_id)
        certain = not failure.uncertain and record.attempts == 1
        told = redact({"code": failure.code, "category": failure.category, "message": failure.message})
        if record.result is not None:
            # What earlier attempts brought is worth more than that this one failed.
            result, state = {**record.result, "last_failure": told}, record.state
        else:
            outcome = "not_accepted" if certain else "unanswered"
            result, state = {"outcome": outcome, "status": None, "error": told}, "settled" if certain else "open"
        await self._keep(record, state=state, result=result)

    async def waits(self, record: CallRecord, *, approval_id: ApprovalId | None) -> None:
        """Keep that a call was taken in and waits for a reviewer."""
        waiting = {"outcome": "pending", "status": "pending_approval"}
        about = {} if approval_id is None else {"approval_id": str(approval_id)}
        await self._keep(record, state="pending", result={**waiting, **about})

    async def reconciled(self, action_id: ActionId, *, proven: bool, verdict: Mapping[str, Any]) -> None:
        """Keep a verdict. proven: it says what happened; otherwise the call stays uncertain."""
        record = await self.known(action_id)
        if record is not None:
            result = {**(record.result or {}), "reconciliation": redact(verdict)}
            await self._keep(record, state="settled" if proven else "uncertain", result=result)

    async def begin_instruction(self, instruction: Instruction) -> Instruction:
        """Keep a decision or a request to cancel before it is sent. Raises: IdentityStoreFailed, IdentityClash."""
        return instruction if self._store is None else await self._store.begin_instruction(instruction)

    async def heard(self, instruction: Instruction, *, outcome: str) -> None:
        """Keep how a decision or a request to cancel ended."""
        await self._keep_said(instruction, result={"outcome": outcome}, settled=True)

    async def unheard(self, instruction: Instruction, failure: ClientFailure) -> None:
        """Keep a failure of one. A certain one of a first attempt settles it; later ones say nothing about earlier."""
        certain = not failure.uncertain and instruction.attempts == 1
        told = redact({"code": failure.code, "category": failure.category, "message": failure.message})
        result = {"outcome": "not_taken" if certain else "unanswered", "error": told}
        await self._keep_said(instruction, result=result, settled=certain)

    async def _keep_said(self, instruction: Instruction, *, result: Mapping[str, Any], settled: bool) -> None:
        if self._store is None:
            return
        try:
            await self._store.keep_said(instruction, result=result, settled=settled)
        except IdentityStoreFailed as exc:
            log.warning("client.answer_not_kept", instruction_id=instruction.instruction_id, reason=exc.message)

    async def _keep(self, record: CallRecord, *, state: CallState, result: Mapping[str, Any]) -> bool:
        if self._store is None:
            return False
        try:
            await self._store.keep_answer(record.action_id, state=state, result=result)
        except IdentityStoreFailed as exc:
            log.warning("client.answer_not_kept", action_id=str(record.action_id), reason=exc.message)
            return False
        return True


def _put(members: dict[str, Any], name: str, value: Identity | None) -> None:
    if value is None:
        return
    if members.setdefault(name, str(value)) != value:
        raise ValueError(f"the input has another `{name}` than the one that was given")


def _identity(kind: type[_I], value: Any) -> _I | None:
    try:
        # What has no bytes could not be kept, and no path can carry it.
        return kind(value) if isinstance(value, str) and value.encode() else None
    except (IdentityError, UnicodeEncodeError):
        return None


def _state_of(result: CallResult) -> CallState:
    match result.outcome:
        case "pending":
            return "pending"
        case "uncertain":
            return "uncertain"
        case _:
            return "settled"


def _kept(result: CallResult) -> JsonObject:
    """Return what is kept of an answer: no transcript, reasoning, tool payload, memory scope or credential."""
    kept: JsonObject = {"outcome": result.outcome, "status": result.status}
    if result.approval_id is not None:
        kept["approval_id"] = str(result.approval_id)
    if "error" in result.raw:
        kept["error"] = redact(result.raw["error"])
    if result.output is not None:
        kept["sha256"] = wire.sha256_hex(result.output)
        output = redact(result.output)
        if len(json.dumps(output)) <= MAX_KEPT_BYTES:
            kept["output"] = output
    return kept
