"""One operation of one endpoint. The row decides; nothing here asks for a name.

check → serial_key → describe → prepare → send → confirm, each as `contract.handler.Handler` promises.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

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
from aip_hermes.contract.rows import Target, load_target
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes import session_evidence as evidence
from aip_hermes.hermes.admission import refuse_unusable
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.answered import answered_session, failed_by_its_word, health_output, row_id, text_of
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.children import children_of
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import Received, RequestSpec
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.headers import headers_of_call
from aip_hermes.hermes.preparation import description_of, refuse_changed_target, refuse_moved_turn, snapshot_of
from aip_hermes.hermes.reconcile import QuietTimes, Reconciler
from aip_hermes.hermes.request import Mapped, map_call, named_by
from aip_hermes.hermes.run_ends import about_run
from aip_hermes.hermes.session_rows import Rows, SessionRow
from aip_hermes.hermes.stopping import stop
from aip_hermes.hermes.stream_reading import read_stream
from aip_hermes.hermes.traces import traces_of
from aip_hermes.hermes.wanted import mapped_facts, wanted_facts
from aip_hermes.hermes.wording import Subject
from aip_hermes.ports import Clock, Faults

__all__ = ["CONFIRM_S", "HermesHandler"]

CONFIRM_S: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Context:
    """What one attempt carries from prepare to confirm."""

    mapped: Mapped
    before: SessionRow | None


class HermesHandler:
    """Interprets one row for one endpoint.

    faults: `hermes.send.before` and `hermes.send.after` enclose the one exchange of `send`. confirm_s: for all reads of
    one read-back, in seconds.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        endpoint: Endpoint,
        attempts: Attempts,
        clock: Clock,
        faults: Faults,
        confirm_s: float = CONFIRM_S,
        quiet: QuietTimes = QuietTimes(),  # noqa: B008  frozen
    ) -> None:
        self._reconciler = Reconciler(operation, endpoint=endpoint, attempts=attempts, clock=clock, quiet=quiet)
        self._operation = operation
        self._endpoint = endpoint
        self._attempts = attempts
        self._clock = clock
        self._faults = faults
        self._confirm_s = confirm_s
        self._target = None if operation.target is None else load_target(operation.target)

    @property
    def operation(self) -> Operation:
        return self._operation

    def check(self, call: Call) -> None:
        refuse_unusable(self._endpoint, self._operation, call)
        self._map(call)

    def serial_key(self, call: Call) -> SerialKey | None:
        if self._operation.serial == "none":
            return None
        session_id = self._map(call).session_id
        if session_id is None:
            return None
        return SerialKey(
            key=f"hermes_agent:{self._endpoint.id}:{session_id}",
            use="exclusive" if self._operation.serial == "exclusive" else "turn",
            subject={"endpoint_id": str(self._endpoint.id), "session_id": session_id},
            hold_s=self._endpoint.turn_timeout_s,
        )

    async def describe(self, call: Call, *, state: State = stateless) -> Description | None:
        if self._target is None:
            return None
        ids = self._map(call).ids
        found = await self._rows(call, first=True).target(self._target, ids)
        snapshot = snapshot_of(found, target=self._target, ids=ids)
        return description_of(
            snapshot, target=self._target, ids=ids, operation=self._operation, endpoint=self._endpoint
        )

    async def context(self, call: Call) -> JsonObject | None:
        if self._operation.context == "none":
            return None
        return await children_of(self._rows(call, first=True), self._map(call).ids["session_id"])

    async def prepare(self, call: Call, described: Mapping[str, Any] | None) -> Prepared:
        mapped = self._map(call)
        rows = self._rows(call, first=True)
        before = await self._row_before(rows, mapped)
        found = None if self._target is None else await self._still(rows, self._target, mapped.ids, described)
        facts: JsonObject = {}
        if not self._operation.read_only:
            facts = {"endpoint_id": str(self._endpoint.id), "wanted": mapped_facts(self._operation, mapped)}
            if (read := before.facts() if before is not None else found) is not None:
                facts |= {"before": read, "read_at_ms": self._clock.now_ms()}
        return Prepared(facts=facts, context=_Context(mapped=mapped, before=before))

    async def _row_before(self, rows: Rows, mapped: Mapped) -> SessionRow | None:
        """Read the session's row where the row's `prepare` asks for it, and refuse a turn that belongs elsewhere."""
        if self._operation.prepare not in ("row", "named") or mapped.session_id is None:
            return None
        try:
            before = await rows.row(mapped.session_id)
        except HermesFailed as exc:
            if self._operation.prepare == "row" or exc.details["remote_status"] != 404:
                raise
            return SessionRow.absent(mapped.session_id)
        if self._operation.serial in ("turn", "run"):
            await refuse_moved_turn(rows, before, operation=self._operation, endpoint=self._endpoint)
        return before

    async def _still(
        self, rows: Rows, target: Target, ids: Mapping[str, str], described: Mapping[str, Any] | None
    ) -> JsonObject:
        """Read the target; refuse it when it is not what was approved. Returns its snapshot."""
        snapshot = snapshot_of(await rows.target(target, ids), target=target, ids=ids)
        if described is not None:
            refuse_changed_target(
                snapshot, described, target=target, ids=ids, operation=self._operation, endpoint=self._endpoint
            )
        return snapshot

    async def send(
        self, call: Call, prepared: Prepared, *, publish: Publish = unpublished, state: State = stateless
    ) -> Answer:
        context = self._context(call, prepared)
        asked = Asked(
            endpoint=self._endpoint,
            subject=self._subject(call, context.mapped),
            mutation=not self._operation.read_only,
            confirm=self._operation.confirm,
            hidden=() if context.mapped.session_key is None else (context.mapped.session_key,),
        )
        request = self._request_now(call, context.mapped)
        await self._faults.reach("hermes.send.before")
        if self._operation.stream != "none":
            answer, received = await read_stream(
                self._attempts, request, asked, operation=self._operation, call=call, publish=publish
            )
        else:
            answer, received = await self._exchange(request, asked, call.deadline_ms)
        await self._faults.reach("hermes.send.after")
        ours = await self._evidence_of_answer(call, context, answer, received)
        return replace(answer, output=answer.output | {"_aip": ours}) if ours else answer

    async def _exchange(self, request: RequestSpec, asked: Asked, deadline_ms: int | None) -> tuple[Answer, Received]:
        arrived: list[Received] = []

        def shape(raw: JsonObject, received: Received) -> JsonObject:
            arrived.append(received)
            return self._shaped(raw, received)

        exchange = self._attempts.repeated if self._operation.read_only else self._attempts.once
        output = await exchange(request, asked, deadline_ms=deadline_ms, shape=shape)
        return about_run(Answer(output=output, text=text_of(output)), self._operation, asked), arrived[-1]

    async def confirm(self, call: Call, prepared: Prepared, outcome: Answer | ActionFailed) -> Answer | ActionFailed:
        context = self._context(call, prepared)
        if not self._worth_confirming(context, outcome):
            return outcome
        read = self._confirm_fork if self._operation.confirm == "fork" else self._confirm_row
        found: JsonObject = {}
        try:
            async with asyncio.timeout(self._confirm_s):
                await read(call, context, outcome, found)
        except TimeoutError:
            found["incomplete"] = f"the read-back took longer than {self._confirm_s:g} s"
        if isinstance(outcome, Answer):
            ours = dict(outcome.output.get("_aip", {})) | found
            return replace(outcome, output=outcome.output | {"_aip": ours})
        outcome.details["reconciliation"] = {"read_at_ms": self._clock.now_ms()} | found
        return outcome

    async def reconcile(self, action: Uncertain) -> Verdict:
        return await self._reconciler.verdict(action)

    def traces(self, call: Call, outcome: Answer | ActionFailed | None) -> Traces:
        ids, session_id = named_by(self._operation, call.input)
        return traces_of(
            self._operation,
            endpoint_id=self._endpoint.id,
            ids=ids,
            session_id=session_id,
            output=None if outcome is None else outcome.output,
        )

    async def cancel(self, call: Call, prepared: Prepared, *, state: State = stateless) -> JsonObject:
        mapped = self._context(call, prepared).mapped
        return await stop(
            self._attempts,
            operation=self._operation,
            endpoint=self._endpoint,
            subject=self._subject(call, mapped),
            target=mapped.request.target,
        )

    def _worth_confirming(self, context: _Context, outcome: Answer | ActionFailed) -> bool:
        rule = self._operation.confirm
        if rule == "none" or context.mapped.session_id is None:
            return False
        if isinstance(outcome, Answer):
            return True
        nothing_began = outcome.frees_key or outcome.details.get("sent") is False
        # A fork is read back whatever its answer: its refusals may come after its first steps.
        return not nothing_began and (outcome.uncertain or rule == "fork")

    async def _confirm_row(
        self, call: Call, context: _Context, outcome: Answer | ActionFailed, found: JsonObject
    ) -> None:
        requested = context.mapped.session_id or ""
        answered = outcome.output["_aip"]["session"]["effective"] if isinstance(outcome, Answer) else None
        effective = answered or requested
        rows = self._rows(call, first=False)
        after, gap = await evidence.read_row(rows, effective)
        turn = evidence.turn_evidence(
            before=context.before,
            after=after,
            same_session=effective == requested,
            text=None if isinstance(outcome, ActionFailed) else outcome.text or "",
            failed=isinstance(outcome, Answer) and failed_by_its_word(outcome.output),
        )
        if gap is not None:
            turn["messages_after_read"] = gap
        if isinstance(outcome, ActionFailed):
            # No answer: a turn may go on for minutes, so a count that has not grown says nothing yet.
            found |= {"messages_before": turn["messages_before"], "messages_after": turn["messages_after"]}
            return
        found["turn"] = turn | self._previous(call)
        if effective != requested and after is not None:
            reason = await evidence.lineage(rows, requested=requested, effective=effective, known=after)
            found["session"] = {"requested": requested, "effective": effective, "reason": reason}
        elif after is not None and after.compressed:
            # The answer named the session in which the turn began; it ended in another one.
            current = await evidence.continuation(rows, requested=requested)
            reason = "unknown" if current is None else "compression"
            found["session"] = {"requested": requested, "effective": current, "reason": reason}

    async def _confirm_fork(
        self, call: Call, context: _Context, outcome: Answer | ActionFailed, found: JsonObject
    ) -> None:
        child_id = context.mapped.new_id
        if isinstance(outcome, Answer):
            child_id = row_id(outcome.output) or child_id
        found["fork"] = await evidence.fork_evidence(
            self._rows(call, first=False),
            source_id=context.mapped.session_id or "",
            child_id=child_id,
            title_sha256=wanted_facts(new_id=None, body=context.mapped.body).get("title_sha256"),
            source_before=context.before,
            refused=isinstance(outcome, ActionFailed) and (outcome.details["remote_status"] or 0) >= 400,
        )

    async def _evidence_of_answer(
        self, call: Call, context: _Context, answer: Answer, received: Received
    ) -> JsonObject:
        """Return `_aip` as far as the answer gives it, and the proof of a moved id where nothing is confirmed later."""
        mapped, output = context.mapped, answer.output
        ours: JsonObject = {}
        if self._operation.session != "none":
            ours["session"] = await self._session(call, mapped, output, received)
        if self._operation.method == "PATCH" and isinstance(session := output.get("session"), Mapping):
            patch = evidence.patch_evidence(requested=mapped.body, before=context.before, session=session)
            if patch is not None:
                ours["patch"] = patch
        if self._operation.turn:
            turn = evidence.turn_evidence(
                before=context.before,
                after=None,
                same_session=True,
                text=answer.text or "",
                failed=failed_by_its_word(output),
            )
            ours["turn"] = turn | self._previous(call)
        if self._operation.turn or mapped.session_key is not None:
            ours["session_key"] = "absent" if mapped.session_key is None else "sent"
        return ours

    async def _session(self, call: Call, mapped: Mapped, output: JsonObject, received: Received) -> JsonObject:
        """Return `_aip.session`: what was asked, what answered, and why they differ where that is proven (D15)."""
        # A row that makes a session is asked for the new one, and its answer is about that one.
        requested = mapped.new_id if self._makes_session else mapped.session_id
        effective = answered_session(self._operation.session, output, received)
        if effective is None:
            return {"requested": requested, "effective": None, "reason": "unknown"}
        reason: evidence.Reason = "none" if requested in (None, effective) else "unknown"
        if requested is not None and reason != "none" and self._proves_now:
            rows = self._rows(call, first=False)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._confirm_s):
                    reason = await evidence.lineage(rows, requested=requested, effective=effective)
        return {"requested": requested, "effective": effective, "reason": reason}

    def _shaped(self, raw: JsonObject, received: Received) -> JsonObject:
        """Return what the row's `answer` rule makes of a provider's answer."""
        if self._operation.answer == "health":
            return health_output(raw, received, endpoint_id=str(self._endpoint.id))
        return raw

    @property
    def _proves_now(self) -> bool:
        """Whether a moved id is proven with the answer, because no read-back follows."""
        return self._operation.session == "answered" and self._operation.confirm == "none"

    @property
    def _makes_session(self) -> bool:
        return self._operation.method == "POST" and self._operation.session == "requested"

    def _previous(self, call: Call) -> JsonObject:
        return {} if call.previous_uncertain is None else {"previous_uncertain": str(call.previous_uncertain)}

    def _map(self, call: Call) -> Mapped:
        return map_call(operation=self._operation, endpoint=self._endpoint, call=call)

    def _request_now(self, call: Call, mapped: Mapped) -> RequestSpec:
        """Return the request with the headers of `call`: prepare may have run before the deadline was known."""
        headers = headers_of_call(
            operation=self._operation,
            endpoint=self._endpoint,
            call=call,
            session_id=mapped.session_id,
            session_key=mapped.session_key,
        )
        return replace(mapped.request, headers=headers)

    def _context(self, call: Call, prepared: Prepared) -> _Context:
        if isinstance(prepared.context, _Context):
            return prepared.context
        return _Context(mapped=self._map(call), before=None)

    def _subject(self, call: Call, mapped: Mapped) -> Subject:
        return Subject(
            endpoint_id=self._endpoint.id,
            doing=self._operation.name,
            action_id=call.action_id,
            session_id=mapped.session_id,
            new_id=mapped.new_id,
            ids={name: value for name, value in mapped.ids.items() if name != "session_id"},
            turn=self._operation.turn,
            fork=self._operation.confirm == "fork",
        )

    def _rows(self, call: Call, *, first: bool) -> Rows:
        # What is read back may take its two seconds even when the action's own time is over.
        return Rows(
            self._attempts,
            endpoint=self._endpoint,
            doing=self._operation.name,
            action_id=call.action_id,
            deadline_ms=call.deadline_ms if first else None,
            first=first,
        )
