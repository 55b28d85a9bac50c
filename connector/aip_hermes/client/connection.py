"""A connection to one AIP server as one principal.

Nothing here repeats a message: whoever calls decides by the identities, which are chosen before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from aip_hermes import wire
from aip_hermes.client.action_reads import ActionReads, events_path
from aip_hermes.client.decisions import Verb, decision_on
from aip_hermes.client.envelopes import (
    ActionMode,
    action_envelope,
    body_envelope,
    decision_envelope,
    principal_of,
)
from aip_hermes.client.failures import HttpFailed
from aip_hermes.client.http import MAX_RESPONSE_BYTES, HttpConnection
from aip_hermes.client.reading import segment
from aip_hermes.client.records import RecordReads
from aip_hermes.client.reply import JsonObject, Reply, read_body, read_envelope
from aip_hermes.client.streams import Patience, StreamFrame, follow
from aip_hermes.ids import ActionId, AipSessionId, ApprovalId, CapabilityId, IdempotencyKey, MessageId, PrincipalId
from aip_hermes.ports import Clock, NewId, SystemClock, new_id
from aip_hermes.secret import Secret

__all__ = ["DEFAULT_PRINCIPAL", "AipConnection"]

DEFAULT_PRINCIPAL = PrincipalId("agent:getaip:cli")

RECONCILE_TIMEOUT_S = 90.0
"""For an answer that waits for an endpoint, which the server gives a minute."""

_MESSAGES = "/aip/v1/messages"


class AipConnection(ActionReads, RecordReads):
    """The native HTTP surface of an AIP server.

    token: the bearer; without one only health and the manifest answer. principal_id: written as the unverified `from`.
    Times in seconds; a post waits as long as the operation behind it unless `answer_timeout_s` is given. Use it as an
    async context manager, or call `aclose`. Every method raises the failures of `client.failures`.
    """

    def __init__(
        self,
        *,
        base_url: str,
        token: Secret | None = None,
        principal_id: PrincipalId = DEFAULT_PRINCIPAL,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float | None = 60.0,
        answer_timeout_s: float | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        tls_ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
        new_id: NewId = new_id,
    ) -> None:
        self.principal_id = principal_id
        self._clock = clock or SystemClock()
        self._new_id = new_id
        self._http = HttpConnection(
            base_url=base_url,
            token=token,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            answer_timeout_s=answer_timeout_s,
            max_response_bytes=max_response_bytes,
            tls_ca_file=tls_ca_file,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()

    @property
    def origin(self) -> str:
        """Scheme, host and port of the server."""
        return self._http.origin

    async def post_message(self, envelope: wire.Envelope, *, answer_timeout_s: float | None = None) -> Reply:
        """Send one envelope, once. answer_timeout_s: for its answer; None: the connection's own."""
        answer = await self._http.post(_MESSAGES, envelope.wire(), answer_timeout_s=answer_timeout_s)
        return read_envelope(answer, message_id=str(envelope.message_id))

    async def get(
        self, path: str, params: Mapping[str, object] | None = None, *, expected: str, what: str = "AIP HTTP GET"
    ) -> JsonObject:
        """Read one route. params: None and "" are left out, booleans are `true` and `false`, False is left out too."""
        answer = await self._http.get(path, _query(params or {}))
        return read_body(answer, expected=expected, what=what)

    async def health(self) -> JsonObject:
        """Return what `/health` says, without authority."""
        return await self.get("/health", expected="status")

    async def me(self) -> JsonObject:
        """Return who the token is: `principal`, `tenant_id`, `scopes`. A route of ours (design D24)."""
        return await self.get("/aip/v1/me", expected="principal")

    async def manifest(
        self,
        *,
        capability_id: str | None = None,
        profile: str | None = None,
        risk: str | None = None,
        side_effect: str | None = None,
        requires_approval: bool | None = None,
        supports_streaming: bool | None = None,
    ) -> JsonObject:
        """Return the manifest; with a token, that of its tenant. Each text may be a comma-separated list."""
        params = {
            "capability_id": capability_id,
            "profile": profile,
            "risk": risk,
            "side_effect": side_effect,
            # False is a wish here, and not the same as none.
            "requires_approval": None if requires_approval is None else str(requires_approval).lower(),
            "supports_streaming": None if supports_streaming is None else str(supports_streaming).lower(),
        }
        return await self.get("/aip/v1/manifest", params, expected="manifest_version", what="manifest fetch")

    async def capabilities(
        self,
        *,
        capability_id: str | None = None,
        text: str | None = None,
        profile: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> JsonObject:
        """Return one page of the tenant's catalogue: `catalog_revision`, `capabilities`, `next_cursor`, `total`."""
        return await self.get(
            "/aip/v1/capabilities",
            {"capability_id": capability_id, "text": text, "profile": profile, "cursor": cursor, "limit": limit},
            expected="capabilities",
        )

    async def call(
        self,
        capability_id: CapabilityId,
        input: Any,
        *,
        action_id: ActionId,
        idempotency_key: IdempotencyKey | None = None,
        mode: ActionMode | None = "sync",
        extra: Mapping[str, Any] | None = None,
        answer_timeout_s: float | None = None,
    ) -> Reply:
        """Submit one action and wait for its answer. See `action_envelope` and `post_message`.

        action_id: chosen and kept by the caller before this call, so that a lost answer can be looked up. A failed
        action is a reply, not an exception: see `Reply.outcome`.
        """
        action = self.action(
            capability_id, input, action_id=action_id, idempotency_key=idempotency_key, mode=mode, extra=extra
        )
        return await self.post_message(action, answer_timeout_s=answer_timeout_s)

    def action(
        self,
        capability_id: CapabilityId,
        input: Any,
        *,
        action_id: ActionId,
        idempotency_key: IdempotencyKey | None = None,
        mode: ActionMode | None = "sync",
        extra: Mapping[str, Any] | None = None,
    ) -> wire.Envelope:
        """Return the message that `call` sends. Raises: pydantic's ValidationError for what can't be one."""
        return action_envelope(
            capability_id=capability_id,
            input=input,
            action_id=action_id,
            message_id=MessageId(self._new_id("msg_")),
            sent_at_ms=self._clock.now_ms(),
            principal_id=self.principal_id,
            idempotency_key=idempotency_key,
            mode=mode,
            extra=extra,
        )

    def follow(
        self,
        action_id: ActionId,
        *,
        cursor: str | None = None,
        kinds: Collection[str] = (),
        include_chunks: bool = True,
        chunks_only: bool = False,
        limit: int | None = None,
        patience: Patience = Patience(),  # noqa: B008  frozen
    ) -> AsyncGenerator[StreamFrame, None]:
        """Yield every frame once, as it comes, to the action's end; of an ended action all of them again.

        After a broken connection, or a stop of the server, it goes on behind its last position. cursor: a position
        of an earlier follower. Leaving stops nothing at the server; to close the connection at once, leave through
        `contextlib.aclosing`. Raises: StreamLost, which names the last position, when going on does not succeed;
        otherwise the usual failures, always certain.
        """
        params = {"kinds": ",".join(kinds), "include_chunks": include_chunks and not chunks_only, "limit": limit}
        return follow(
            self._http,
            events_path(action_id, chunks_only=chunks_only),
            _query(params),
            cursor=cursor,
            patience=patience,
            clock=self._clock,
        )

    def follow_log(
        self,
        *,
        cursor: str | None = None,
        kinds: Collection[str] = (),
        limit: int | None = None,
        patience: Patience = Patience(),  # noqa: B008  frozen
    ) -> AsyncGenerator[StreamFrame, None]:
        """Yield the events of all actions that the caller may see, as `follow` does; it has no end."""
        params = {"kinds": ",".join(kinds), "limit": limit}
        return follow(self._http, "/aip/v1/events", _query(params), cursor=cursor, patience=patience, clock=self._clock)

    async def cancel(self, action_id: ActionId, reason: str | None = None) -> JsonObject:
        """Ask to cancel, once, and return `{"action_result": …}`: cancelled, or the result that came first.

        Asking again is safe. Raises: PeerError `action.cancel_unsupported` for what was sent and can't be stopped.
        """
        answer = await self._http.post(f"/aip/v1/actions/{segment(action_id)}/cancel", {"reason": reason})
        return read_body(answer, expected="action_result", what="AIP HTTP POST", changes=True)

    async def close_aip_session(self, session_id: AipSessionId, reason: str | None = None) -> JsonObject:
        """Close an AIP session, once, and return `{"session_view": …}`. Raises: PeerError `session.not_found`."""
        answer = await self._http.post(f"/aip/v1/sessions/{segment(session_id)}/close", {"reason": reason})
        return read_body(answer, expected="session_view", what="AIP HTTP POST", changes=True)

    async def resume_aip_session(
        self, session_id: AipSessionId, *, resume_token: str | None = None, last_event_cursor: str | None = None
    ) -> JsonObject:
        """Take an AIP session up again, once, and return `{"session_resume": …}`. Raises: PeerError."""
        body = {"resume_token": resume_token, "last_event_cursor": last_event_cursor}
        answer = await self._http.post(f"/aip/v1/sessions/{segment(session_id)}/resume", body)
        return read_body(answer, expected="session_resume", what="AIP HTTP POST", changes=True)

    async def reconcile(self, action_id: ActionId) -> JsonObject:
        """Have the server look what became of an uncertain action, and return `{"reconciliation": …}`.

        It only reads at the endpoint, so asking again is safe and a lost answer is certain. A route of ours.
        """
        path = f"/aip/v1/actions/{segment(action_id)}/reconcile"
        answer = await self._http.send("POST", path, body={}, timeout=RECONCILE_TIMEOUT_S, changes=False)
        return read_body(answer, expected="reconciliation", what="AIP HTTP POST")

    async def approver(self) -> JsonObject:
        """Return the principal that decides through this connection: the token's, else the given id and its kind."""
        try:
            principal = (await self.me())["principal"]
        except HttpFailed as exc:
            if exc.http_status != 404:
                raise
            return principal_of(self.principal_id).wire()
        return dict(principal)

    async def decide(
        self, approval_id: ApprovalId, *, decision: Verb, reason: str, decision_id: str | None = None
    ) -> Reply:
        """Read the record and send one decision about exactly what was read.

        decision_id: the replay key of the decision; made here when absent. Lasts as long as the action that an
        approval releases. Raises: AlreadyDecided besides the usual ones.
        """
        record = (await self.approval(approval_id))["approval_record_view"]
        return await self.send_decision(
            decision_on(
                record,
                approval_id=approval_id,
                decision=decision,
                reason=reason,
                approver=await self.approver(),
                decision_id=decision_id or self._new_id("decision_"),
                decided_at_ms=self._clock.now_ms(),
            )
        )

    async def send_body(self, body: Mapping[str, Any]) -> Reply:
        """Send one message whose body is `{key: content}`, once. Raises: pydantic's ValidationError before sending."""
        return await self.post_message(
            body_envelope(
                body,
                message_id=MessageId(self._new_id("msg_")),
                sent_at_ms=self._clock.now_ms(),
                principal_id=self.principal_id,
            )
        )

    async def send_decision(self, decision: Mapping[str, Any]) -> Reply:
        """Send one `ApprovalDecision` as it is, once."""
        return await self.post_message(
            decision_envelope(
                decision,
                message_id=MessageId(self._new_id("msg_")),
                sent_at_ms=self._clock.now_ms(),
                principal_id=self.principal_id,
            )
        )


def _query(params: Mapping[str, object]) -> dict[str, str]:
    sent: dict[str, str] = {}
    for name, value in params.items():
        if value is None or value is False or value == "":
            continue
        sent[name] = "true" if value is True else str(value)
    return sent
