"""The rules of design D2, D3, D4, D9 and D13 as a small model: what the runtime must answer, and what it then knows.

It has no store, no process and no task: a mapping of actions, a mapping of keys, and the time until which a session is
closed. A crash is the phase in which it came. Written from the design, not from the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

__all__ = ["APPROVAL_MS", "HOLD_MS", "KEY_MS", "POINTS", "Answered", "Kept", "Model", "Outcome", "Request"]

Outcome = Literal["completed", "temporary", "credential", "rejected", "uncertain"]

APPROVAL_MS: Final = 900_000
HOLD_MS: Final = 900_000
KEY_MS: Final = 86_400_000

_ID_CONFLICT: Final = "action.id_conflict"
_SCRIPTED: Final = "connector.scripted."
BUSY, LOST, CANCELLED = f"{_SCRIPTED}session_busy", f"{_SCRIPTED}outcome_unknown", f"{_SCRIPTED}cancelled"

POINTS: Final = (
    "after_claim", "after_park", "after_decision", "after_lock", "after_prepare", "after_intent", "after_send",
    "after_answer", "before_settle", "after_settle",
)  # fmt: skip
_LOCKED: Final = ("after_lock", "after_prepare")
_SENT: Final = ("after_send", "after_answer", "before_settle")
_SERIAL: Final = frozenset({"session_chat", "session_fork", "session_delete"})


@dataclass(frozen=True, kw_only=True)
class Request:
    """A submission. session: what it is about."""

    action_id: str
    operation: str
    session: str
    key: str | None = None
    queued: bool = False

    @property
    def content(self) -> tuple[object, ...]:
        return self.operation, self.session, self.key, self.queued


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is known of an action. frees: it does not bind its Action ID and key. sends: over all attempts.
    wakes_at: when an approved action that met a closed session goes on. decision: the verb that ended its approval."""

    request: Request
    state: str
    code: str | None = None
    uncertain: bool = False
    frees: bool = False
    sends: int = 0
    asked_at: int = 0
    wakes_at: int | None = None
    decision: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a submission must be answered with. owner: the action whose end it is. code: of an error envelope when
    `owner` is None. died: the process ends instead."""

    owner: str | None = None
    code: str | None = None
    replay: bool = False
    died: bool = False


_ENDS: Final[Mapping[Outcome, Mapping[str, Any]]] = {
    "completed": {"state": "completed", "code": None, "uncertain": False, "frees": False},
    "temporary": {"state": "failed", "code": f"{_SCRIPTED}temporary", "uncertain": False, "frees": True},
    "credential": {"state": "failed", "code": f"{_SCRIPTED}credential", "uncertain": False, "frees": True},
    "rejected": {"state": "failed", "code": f"{_SCRIPTED}rejected", "uncertain": False, "frees": False},
    "uncertain": {"state": "failed", "code": LOST, "uncertain": True, "frees": False},
}
_INTERRUPTED: Final = {"state": "failed", "code": "runtime.interrupted", "uncertain": False, "frees": True}


@dataclass
class Model:
    """now: milliseconds. actions: by Action ID. keys: (operation, key) → Action ID and expiry. closed: by session."""

    now: int
    actions: dict[str, Kept] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)

    def submit(self, request: Request, outcome: Outcome, *, point: str | None = None) -> Answered:
        """point: where the process dies, if this work passes it."""
        known = self.actions.get(request.action_id)
        if known is not None and known.request.content != request.content:
            return Answered(code=_ID_CONFLICT)
        if known is not None and not known.frees:
            return Answered(owner=request.action_id)
        holder = self.holder(request)
        if holder is not None:
            return Answered(owner=holder, replay=True)
        if request.key is not None:
            self.keys[request.operation, request.key] = (request.action_id, self.now + KEY_MS)
        kept = Kept(request=request, state="running", sends=0 if known is None else known.sends, asked_at=self.now)
        self.actions[request.action_id] = kept
        if request.operation == "session_delete":
            return self._ask(kept, point)
        return self._run(kept, outcome, point)

    def holder(self, request: Request) -> str | None:
        """Return whose result the key answers with, where one does."""
        if request.key is None:
            return None
        action_id, expires_at = self.keys.get((request.operation, request.key), (None, 0))
        return action_id if expires_at > self.now else None

    def decide(self, action_id: str, verb: str, outcome: Outcome, *, point: str | None = None) -> Answered:
        """Answered.code: of a refused decision."""
        kept = self.actions[action_id]
        if kept.state != "pending_approval":
            return Answered(owner=action_id) if kept.decision == verb else Answered(code="auth.not_authorized")
        kept = self.actions[action_id] = replace(kept, decision=verb)
        if verb == "denied":
            self._end(kept, state="failed", code="policy.approval_denied")
            return Answered(owner=action_id, died=point == "after_decision")
        return self._run(kept, outcome, point, approved=True)

    def cancel(self, action_id: str) -> Answered:
        kept = self.actions[action_id]
        if kept.state in ("pending_approval", "queued"):
            self._end(kept, state="cancelled", code=CANCELLED)
        return Answered(owner=action_id)

    def advance(self, ms: int, outcome: Outcome) -> None:
        """Let time pass: approvals end, sessions open, who waits for one goes on."""
        self.now += ms
        for kept in list(self.actions.values()):
            if kept.state == "pending_approval" and kept.asked_at + APPROVAL_MS <= self.now:
                self._end(kept, state="failed", code="policy.approval_expired")
            elif kept.state == "queued" and kept.wakes_at is not None and kept.wakes_at <= self.now:
                if kept.asked_at + APPROVAL_MS <= self.now:
                    self._end(kept, state="dead_lettered", code=BUSY, frees=True)
                else:
                    self._run(kept, outcome, None, approved=True)

    def _ask(self, kept: Kept, point: str | None) -> Answered:
        if point == "after_claim":
            return self._dies(kept, **_INTERRUPTED)
        self.actions[kept.request.action_id] = replace(kept, state="pending_approval", decision=None)
        return Answered(owner=kept.request.action_id, died=point == "after_park")

    def _run(self, kept: Kept, outcome: Outcome, point: str | None, *, approved: bool = False) -> Answered:
        """Take the steps of design §3; stop where the process dies."""
        request, early = kept.request, not kept.request.operation.startswith("session_create")
        goes_on = approved or request.queued
        if point == "after_claim" and not approved:
            return self._dies(kept, **_INTERRUPTED) if early else self._lost(kept, sends=0)
        if point == "after_decision" and approved:
            self._run(kept, outcome, None, approved=True)
            return Answered(owner=request.action_id, died=True)
        if self._closed_to(request):
            return self._busy(kept, point, approved=approved)
        if point == "after_prepare" and not early:
            return self._lost(kept, sends=0)
        if point in _LOCKED and early:
            if not goes_on:
                return self._dies(kept, **_INTERRUPTED)
            self._run(kept, outcome, None, approved=approved)
            return Answered(owner=request.action_id, died=True)
        if point == "after_intent" and early:
            return self._lost(kept, sends=0)
        if point in _SENT:
            return self._lost(kept, sends=1)
        self._end(replace(kept, sends=kept.sends + 1), **_ENDS[outcome])
        return Answered(owner=request.action_id, died=point == "after_settle")

    def _closed_to(self, request: Request) -> bool:
        """Whether an uncertain turn may still be running there (design D13)."""
        return request.operation in ("session_fork", "session_delete") and self._closed_until(request) > self.now

    def _closed_until(self, request: Request) -> int:
        return self.closed.get(request.session, 0)

    def _busy(self, kept: Kept, point: str | None, *, approved: bool) -> Answered:
        action_id = kept.request.action_id
        if not approved and point == "before_settle":
            return self._dies(kept, **_INTERRUPTED)
        wakes_at = self._closed_until(kept.request)
        if approved and wakes_at < kept.asked_at + APPROVAL_MS:
            self.actions[action_id] = replace(kept, state="queued", wakes_at=wakes_at)
        else:
            self._end(kept, state="failed", code=BUSY, frees=True)
        return Answered(owner=action_id, died=point in ("before_settle", "after_settle"))

    def _lost(self, kept: Kept, *, sends: int) -> Answered:
        return self._dies(replace(kept, sends=kept.sends + sends), **_ENDS["uncertain"])

    def _dies(self, kept: Kept, **end: Any) -> Answered:
        self._end(kept, **end)
        return Answered(owner=kept.request.action_id, died=True)

    def _end(self, kept: Kept, *, state: str, code: str | None, uncertain: bool = False, frees: bool = False) -> None:
        request, queued = kept.request, kept.request.queued or kept.wakes_at is not None
        if queued and state == "failed" and code != _INTERRUPTED["code"]:
            state = "dead_lettered"
        if uncertain and request.operation == "session_chat":
            self.closed[request.session] = max(self._closed_until(request), self.now + HOLD_MS)
        if frees and request.key is not None and self.holder(request) == request.action_id:
            del self.keys[request.operation, request.key]
        self.actions[request.action_id] = replace(kept, state=state, code=code, uncertain=uncertain, frees=frees)
