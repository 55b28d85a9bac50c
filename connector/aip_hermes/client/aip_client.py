"""A client for applications: typed answers, and identities that are kept before anything consequential is sent.

It stands on AipConnection, which makes the exchanges one by one and says what came back as it came. A call leaves
once; only safe reads are repeated. Source: design §1, §3 step 1, D1–D3, D19.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
from pydantic import ValidationError

from aip_hermes import wire
from aip_hermes.client import results
from aip_hermes.client.aip_instructions import AipInstructions
from aip_hermes.client.calling import check_kinds, check_place, named, naming, planned, with_identities
from aip_hermes.client.connection import DEFAULT_PRINCIPAL, AipConnection
from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.failures import ClientFailure, Undecodable
from aip_hermes.client.http import MAX_RESPONSE_BYTES, check_times
from aip_hermes.client.identities import CallIdentities, CallRecord, IdentityStore
from aip_hermes.client.reply import Reply
from aip_hermes.client.resuming import Resumed, same_submission
from aip_hermes.client.safe_reads import SafeReads
from aip_hermes.client.token_file import load_token
from aip_hermes.client.verdicts import Reconciliation, reconciliation_of
from aip_hermes.ids import (
    ActionId,
    CapabilityId,
    EndpointId,
    HermesSessionId,
    HermesSessionKey,
    IdempotencyKey,
    PrincipalId,
)
from aip_hermes.ports import Clock, Faults, NewId, NoFaults, SystemClock, new_id
from aip_hermes.secret import Secret

__all__ = ["AipClient"]

_READS: Final = frozenset({"read", "external_network"})
"""Effects of a capability that changes nothing."""

_MARGIN_S: Final = 30.0
"""What an answer may take beyond the times that a capability publishes: the way, and settling."""

_PAUSE_S: Final = 0.1
_LONG_PAUSE_S: Final = 1.0


class AipClient(AipInstructions):
    """One AIP server as one principal.

    token, or token_file (0600, see `load_token`). store: where identities are kept; a borrowed one, which this client
    never closes; without one nothing is kept, and every result and every failure names the identities all the same.
    call_timeout_s: how long a call waits for its answer; None: as long as its capability publishes, plus 30 s. Times
    in seconds. read_tries: of safe reads. faults: named points for tests.

    Use it as an async context manager, or call `aclose`. Every method raises the failures of `client.failures`.
    """

    def __init__(
        self,
        *,
        base_url: str,
        token: Secret | None = None,
        token_file: Path | str | None = None,
        store: IdentityStore | None = None,
        principal_id: PrincipalId = DEFAULT_PRINCIPAL,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float | None = 60.0,
        call_timeout_s: float | None = None,
        read_tries: int = 3,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        tls_ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
        new_id: NewId = new_id,
        faults: Faults | None = None,
    ) -> None:
        if token is not None and token_file is not None:
            raise ValueError("a token is given by value or by file, not by both")
        check_times(call_timeout_s=call_timeout_s)
        self._clock = clock or SystemClock()
        connection = AipConnection(
            base_url=base_url,
            token=load_token(file=Path(token_file)) if token_file is not None else token,
            principal_id=principal_id,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            max_response_bytes=max_response_bytes,
            tls_ca_file=tls_ca_file,
            transport=transport,
            clock=self._clock,
            new_id=new_id,
        )
        super().__init__(
            connection,
            store=store,
            reads=SafeReads(tries=read_tries, clock=self._clock),
            read_timeout_s=read_timeout_s,
            clock=self._clock,
            new_id=new_id,
            faults=faults or NoFaults(),
        )
        self._call_timeout_s = call_timeout_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the store stays open. Idempotent."""
        await self.connection.aclose()

    async def call(
        self,
        capability_id: CapabilityId,
        input: Any,
        *,
        action_id: ActionId | None = None,
        idempotency_key: IdempotencyKey | None = None,
        session_id: HermesSessionId | None = None,
        new_session_id: HermesSessionId | None = None,
        session_key: HermesSessionKey | None = None,
        mode: ActionMode = "sync",
        extra: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        group: str | None = None,
        step: str | None = None,
    ) -> results.CallResult:
        """Submit one action and return how it stands. A failed action is a result: see `CallResult.completed`.

        action_id, idempotency_key: chosen by the caller, else made here, before anything is sent; an Action ID that the
        store knows brings its key along, so that the same call can be submitted again unchanged. session_id,
        session_key, new_session_id (what a create or a fork makes) are put into the input where it does not name them
        itself. A consequential call is kept in the store first, and leaves once; a safe read is not kept and is
        repeated after a failure that may pass. group, step: kept with the call, for whoever made it.

        Raises: IdentityStoreFailed, IdentityClash, before anything is sent; ValueError for identities that contradict
        the input, for a time that is none and for what is no action; TypeError for an identity in the place of another;
        the failures of an exchange, with `identities` and `next_step`.
        """
        check_times(timeout_s=timeout_s)
        check_kinds(
            action_id=(action_id, ActionId),
            idempotency_key=(idempotency_key, IdempotencyKey),
            session_id=(session_id, HermesSessionId),
            new_session_id=(new_session_id, HermesSessionId),
            session_key=(session_key, HermesSessionKey),
        )
        check_place(capability_id, new_session_id)
        if action_id is not None and idempotency_key is None:
            known = await self._ledger.known(action_id)
            idempotency_key = known.idempotency_key if known is not None else None
        whole = with_identities(input, session_id=session_id, new_session_id=new_session_id, session_key=session_key)
        identities = named(
            whole,
            action_id=action_id or ActionId(self._new_id("act_")),
            capability_id=capability_id,
            idempotency_key=idempotency_key,
        )
        with naming(identities):
            contract = await self.contract(capability_id)
            if contract is not None and _READS.issuperset(contract.side_effects):
                return await self._read(identities, whole, mode=mode, extra=extra, timeout_s=timeout_s)
        if idempotency_key is None and (contract is None or contract.idempotency.requirement != "unsupported"):
            key = IdempotencyKey(self._new_id("key_"))
            identities = named(whole, action_id=identities.action_id, capability_id=capability_id, idempotency_key=key)
        record = planned(identities, whole, server=self.origin, mode=mode, extra=extra, group=group, step=step)
        return await self._send(record, whole, extra=extra, timeout_s=timeout_s)

    async def result(self, action_id: ActionId, *, wait_s: float | None = None) -> results.CallResult:
        """Return how an action ended; what the store knows of it is brought up to date.

        wait_s: as of `status`. Raises: PeerError `action.result_not_ready` while there is no result.
        """
        record = await self._ledger.known(action_id)
        identities = record.identities if record is not None else CallIdentities(action_id=action_id)
        with naming(identities):
            raw = await self._reads(lambda: self.connection.result(action_id, wait_ms=self._wait_ms(wait_s)))
        result = results.call_result(raw["action_result"], identities=identities)
        return result if record is None else await self._ledger.answered(record, result)

    async def wait(self, action_id: ActionId, *, timeout_s: float) -> results.CallResult:
        """Return how an action ended, as soon as it has: a reviewer's decision, a queue, a turn.

        Raises: TimeoutError after `timeout_s`; the action goes on.
        """
        ends = self._clock.monotonic() + timeout_s
        while True:
            left_s = ends - self._clock.monotonic()
            progress = await self.status(action_id, wait_s=max(left_s, 0.0))
            if progress.terminal:
                return await self.result(action_id)
            if left_s <= 0:
                raise TimeoutError(f"{action_id} is {progress.state} after {timeout_s} s; it goes on")
            # Not every server waits for us, and none waits for an action that it does not know yet.
            pause_s = _PAUSE_S if progress.state != "unknown" else _LONG_PAUSE_S
            await self._clock.sleep(min(pause_s, left_s))

    async def open_calls(self, *, endpoint: EndpointId | None = None, group: str | None = None) -> list[CallRecord]:
        """Return the calls to this server whose end the store does not know, oldest first; without a store none."""
        if self.store is None:
            return []
        return list(await self.store.open_calls(server=self.origin, endpoint=endpoint, group=group))

    async def resume(self, record: CallRecord, *, input: Any = None, extra: Mapping[str, Any] | None = None) -> Resumed:
        """Ask the server what became of a call, and keep that. Reads only, unless `input` is given.

        input: the very input of the call. Where the server never received the call, the same submission is then sent
        again, under the same Action ID and key: a server of ours binds both to their first content and answers a
        repeat from its store, so the call can't run twice, even where the lost one arrives after all. Only as long as
        the server surely remembers the key. Raises: IdentityClash for an input that is not that of the call.
        """
        if record.server != self.origin:
            raise ValueError(f"{record.action_id} was called at {record.server}, this client asks {self.origin}")
        progress = await self.status(record.action_id)
        if progress.state == "unknown":
            if input is None:
                return Resumed(record=record, state="never_received")
            contract = await self.contract(record.capability_id)
            with naming(record.identities):
                whole = same_submission(record, input, extra=extra, contract=contract, now_ms=self._clock.now_ms())
            result = await self._send(record, whole, extra=extra, timeout_s=None)
        elif progress.terminal:
            result = await self.result(record.action_id)
        elif progress.state == "pending_approval":
            await self._ledger.waits(record, approval_id=progress.approval_id)
            kept = await self._ledger.known(record.action_id)
            return Resumed(record=kept or record, state="pending", approval_id=progress.approval_id)
        else:
            return Resumed(record=record, state="running")
        kept = await self._ledger.known(record.action_id)
        return Resumed.of(kept or record, result)

    async def reconcile(self, action_id: ActionId) -> Reconciliation:
        """Have the server look what became of an uncertain action, and keep its verdict. Reads only: ask as often as
        you like; before `retry_after_ms` nothing more can be proven. Raises: PeerError `action.not_found`."""
        with naming(CallIdentities(action_id=action_id)):
            found = reconciliation_of(await self._reads(lambda: self.connection.reconcile(action_id)))
        if found.settled:
            await self._ledger.reconciled(action_id, proven=found.proven, verdict=found.raw)
        return found

    async def reconciliation(self, action_id: ActionId) -> Reconciliation:
        """Return the last verdict. Raises: PeerError `reconciliation.not_found` where nobody has looked yet."""
        with naming(CallIdentities(action_id=action_id)):
            return reconciliation_of(await self._reads(lambda: self.connection.reconciliation(action_id)))

    async def _send(
        self, record: CallRecord, input: Any, *, extra: Mapping[str, Any] | None, timeout_s: float | None
    ) -> results.CallResult:
        # What can't be sent is not kept as if it had been.
        action = self._action(record.identities, input, mode=record.mode, extra=extra)
        with naming(record.identities):
            record = await self._ledger.begin(record)
        await self._faults.reach("client_identities_kept")
        try:
            reply = await self.connection.post_message(
                action, answer_timeout_s=timeout_s or self._answer_within(record.capability_id)
            )
            result = self._judged(reply, record.identities)
        except ClientFailure as failure:
            await self._ledger.failed(record, failure)
            raise
        await self._faults.reach("client_answered")
        return await self._ledger.answered(record, result)

    async def _read(
        self,
        identities: CallIdentities,
        input: Any,
        *,
        mode: ActionMode,
        extra: Mapping[str, Any] | None,
        timeout_s: float | None,
    ) -> results.CallResult:
        """Call what changes nothing; the same submission is repeated, so that it stays one action."""
        assert identities.capability_id is not None  # noqa: S101 - a call names its capability
        capability_id = identities.capability_id
        self._action(identities, input, mode=mode, extra=extra)
        try:
            reply = await self._reads(
                lambda: self.connection.call(
                    capability_id,
                    input,
                    action_id=identities.action_id,
                    idempotency_key=identities.idempotency_key,
                    mode=mode,
                    extra=extra,
                    answer_timeout_s=timeout_s or self._answer_within(capability_id),
                )
            )
        except ClientFailure as failure:
            # A read has no effect that could have happened.
            failure.uncertain = False
            raise
        return self._judged(reply, identities)

    def _action(
        self, identities: CallIdentities, input: Any, *, mode: ActionMode, extra: Mapping[str, Any] | None
    ) -> wire.Envelope:
        assert identities.capability_id is not None  # noqa: S101 - a call names its capability
        try:
            return self.connection.action(
                identities.capability_id,
                input,
                action_id=identities.action_id,
                idempotency_key=identities.idempotency_key,
                mode=mode,
                extra=extra,
            )
        except ValidationError as exc:
            # The validator's own words would show the input.
            raise ValueError(f"this can't be sent as an action: {'; '.join(wire.violations(exc))}") from None

    def _judged(self, reply: Reply, identities: CallIdentities) -> results.CallResult:
        try:
            return results.call_result(reply.body, identities=identities, ack=reply.body_key == "ack")
        except Undecodable as failure:
            failure.uncertain = True
            raise

    def _answer_within(self, capability_id: CapabilityId) -> float | None:
        if self._call_timeout_s is not None:
            return self._call_timeout_s
        contract = self._contracts.get(capability_id)
        if contract is None or contract.sla is None or contract.sla.timeout_ms is None:
            return None
        return (contract.sla.timeout_ms + (contract.sla.max_queue_delay_ms or 0)) / 1000 + _MARGIN_S
