"""What a server is asked to do while it is killed: each kind of work as its client sees it.

Every story bears a mark of its own that its one mutating request carries, so that the provider's log can be counted by
it. A story can be told twice: its identities are the same, as those of a client that got no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from aip_hermes.client import AipConnection
from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.failures import NoAnswer, NotReachable
from aip_hermes.ids import ActionId, ApprovalId, CapabilityId, IdempotencyKey
from tests.support.crash_stage import REVIEWER, Server

__all__ = ["KINDS", "Kind", "Known", "Story", "approve", "known", "told"]

Kind = Literal["create", "fork", "turn", "queued", "stream", "delete"]

KINDS: Final[Mapping[Kind, tuple[str, ActionMode]]] = {
    "create": ("session_create", "sync"),
    "fork": ("session_fork", "sync"),
    "turn": ("session_chat", "sync"),
    "queued": ("session_chat", "async"),
    "stream": ("session_chat_stream", "streaming"),
    "delete": ("session_delete", "sync"),
}
"""create: keyed; neither lock nor read, so claim and intent are one commit. fork: keyed, with both. turn, queued
(async), stream: without a key. delete: keyed, and approved by somebody else."""

_UNDER_WAY = ("queued", "running")


@dataclass(frozen=True, kw_only=True)
class Story:
    """One action. mark: what the provider's log is counted by, and of which the identities are made."""

    kind: Kind
    mark: str

    @property
    def action_id(self) -> ActionId:
        return ActionId(f"act_{self.mark}")

    @property
    def session_id(self) -> str | None:
        """The session that must exist at the provider."""
        return {"create": None, "fork": f"source-of-{self.mark}", "delete": self.mark}.get(
            self.kind, f"session-of-{self.mark}"
        )

    @property
    def input(self) -> dict[str, Any]:
        match self.kind:
            case "create":
                return {"body": {"id": self.mark}}
            case "fork":
                return {"session_id": self.session_id, "body": {"id": self.mark}}
            case "delete":
                return {"session_id": self.session_id}
            case _:
                return {"session_id": self.session_id, "message": self.mark}

    async def submit(self, connection: AipConnection) -> dict[str, Any]:
        """Send it, always as the same submission; return the result or the acknowledgement."""
        operation, mode = KINDS[self.kind]
        keyed = self.kind in ("create", "fork", "delete")
        reply = await connection.call(
            CapabilityId(f"cap:hermes_agent:primary:{operation}"),
            self.input,
            action_id=self.action_id,
            idempotency_key=IdempotencyKey(f"key-{self.mark}") if keyed else None,
            mode=mode,
        )
        return reply.body


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the runtime says of an action. state: of its status. code: of its error. approval_id: what it waits for."""

    state: str
    code: str | None = None
    uncertain: bool = False
    retryable: bool = False
    approval_id: str | None = None


async def known(connection: AipConnection, action_id: ActionId) -> Known:
    """Ask until the action does not change by itself any more."""
    while True:
        status = (await connection.status(action_id, include_result=True))["action_status"]
        if status["state"] not in _UNDER_WAY:
            break
    error = (status.get("result") or {}).get("error") or {}
    return Known(
        state=status["state"],
        code=error.get("code"),
        uncertain=error.get("details", {}).get("uncertain_outcome") is True,
        retryable=error.get("retryable") is True,
        approval_id=status.get("approval_id"),
    )


async def told(server: Server, story: Story) -> bool:
    """Tell a story to its end, the reviewer's part too; False when the server died on the way."""
    try:
        async with server.connection() as requester, server.connection(REVIEWER) as reviewer:
            await story.submit(requester)
            found = await known(requester, story.action_id)
            if found.approval_id is not None and found.state == "pending_approval":
                await approve(reviewer, found.approval_id)
    except (NoAnswer, NotReachable):
        return False
    return True


async def approve(reviewer: AipConnection, approval_id: str) -> None:
    """Approve, under the one decision id that this approval gets however often it is sent."""
    await reviewer.decide(
        ApprovalId(approval_id), decision="approved", reason="case closed", decision_id=f"decision:{approval_id}"
    )
