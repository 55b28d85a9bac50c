"""Runs: turns that are started, watched, asked about and stopped by id. Kept in memory; a restart forgets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from aip_hermes.embedded.agent.events import (
    CHOICES,
    AgentEvent,
    Choice,
    Question,
    StepText,
    TextDelta,
    ToolCompleted,
    ToolStarted,
    TurnBegan,
)
from aip_hermes.embedded.agent.turns import Order, TurnResult, Turns
from aip_hermes.ports import Clock
from aip_hermes.redact import redact_text

__all__ = ["ApprovalNotActive", "ApprovalNotPending", "Run", "Runs", "UnknownRun"]

Reader = Callable[[dict[str, Any] | None], None]
"""Takes an event, or None after the last one; returns at once."""

Status = Literal["queued", "running", "waiting_for_approval", "stopping", "completed", "failed", "cancelled"]

_OVER: Final = frozenset({"completed", "failed", "cancelled"})
_KEPT_S: Final = 3600.0
_UNREAD_S: Final = 300.0
_APPROVAL_S: Final = 60.0


class UnknownRun(LookupError):
    """No run has this id, or it is over and nothing can be done to it, or its events were handed out."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run not found: {run_id}")
        self.run_id = run_id


class ApprovalNotActive(Exception):
    """The run is over."""


class ApprovalNotPending(Exception):
    """The run asks nothing."""


class Run:
    """One run: what it is, what it told, whom it asks. It hears its turn and decides about its tools."""

    def __init__(self, run_id: str, *, session_id: str, model: str, clock: Clock) -> None:
        self.run_id = run_id
        self.ended_at: float | None = None
        self.task: asyncio.Task[None] | None = None
        self._clock = clock
        self._session_id = session_id
        self._model = model
        self._status: Status = "queued"
        self._created_at = self._updated_at = clock.now_ms() / 1000
        self._begun = clock.monotonic()
        self._last_event: str | None = None
        self._outcome: dict[str, Any] = {}
        self._asked: asyncio.Future[Choice] | None = None
        self._unread: list[dict[str, Any]] | None = []
        self._reader: Reader | None = None

    @property
    def over(self) -> bool:
        """Nothing changes any more."""
        return self._status in _OVER

    @property
    def shown(self) -> dict[str, Any]:
        """What a status request answers."""
        last = {} if self._last_event is None else {"last_event": self._last_event}
        return {
            "object": "hermes.run",
            "run_id": self.run_id,
            "status": self._status,
            "updated_at": self._updated_at,
            "created_at": self._created_at,
            "session_id": self._session_id,
            "model": self._model,
            **last,
            **self._outcome,
        }

    def hear(self, event: AgentEvent) -> None:
        """Listen to the turn."""
        match event:
            case TurnBegan():
                self._session_id = event.session_id
                self._become("running")
            case TextDelta():
                self.tell("message.delta", {"delta": event.text})
            case StepText():
                self.tell("reasoning.available", {"text": event.text})
            case ToolStarted():
                self.tell("tool.started", {"tool": event.call.name, "preview": event.preview})
            case ToolCompleted():
                members = {"tool": event.call.name, "duration": event.seconds, "error": event.failed}
                self.tell("tool.completed", members)

    async def ask(self, question: Question) -> Choice | None:
        """Ask the run's caller; nobody in a minute means deny."""
        self._asked = asyncio.get_running_loop().create_future()
        self._become("waiting_for_approval")
        request = {
            "command": redact_text(question.command),
            "pattern_key": question.pattern,
            "pattern_keys": [question.pattern],
            "description": question.description,
            "allow_permanent": True,
            "choices": list(CHOICES),
        }
        self.tell("approval.request", request)
        waiting = asyncio.ensure_future(self._clock.sleep(_APPROVAL_S))
        either: set[asyncio.Future[Any]] = {self._asked, waiting}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            choice: Choice = self._asked.result() if self._asked.done() else "deny"
        finally:
            waiting.cancel()
            self._asked = None
        self._become("running")
        return choice

    def answer(self, choice: Choice) -> int:
        """Take a decision; returns how many questions it answered. Raises ApprovalNotActive, ApprovalNotPending."""
        if self.over:
            raise ApprovalNotActive
        if self._asked is None or self._asked.done():
            raise ApprovalNotPending
        self._asked.set_result(choice)
        self.tell("approval.responded", {"choice": choice, "resolved": 1})
        return 1

    def stop(self) -> None:
        """Stop the turn, also out of a question. Raises UnknownRun where it is over."""
        if self.over or self.task is None:
            raise UnknownRun(self.run_id)
        self._become("stopping")
        self._last_event = "run.stopping"
        self.task.cancel()

    def read(self, reader: Reader) -> None:
        """Hand the events to a reader: those so far, those to come, then None. Once only.

        Raises UnknownRun for a second reader, and where nobody came in time.
        """
        if self._unread is None:
            raise UnknownRun(self.run_id)
        unread, self._unread, self._reader = self._unread, None, reader
        for event in unread:
            reader(event)
        if self.over:
            reader(None)

    def leave(self) -> None:
        """The reader is gone; what follows is told to nobody."""
        self._reader = None

    def drop_unread(self) -> None:
        """Let go of events that nobody came for in time."""
        if self._clock.monotonic() - self._begun > _UNREAD_S:
            self._unread = None

    def complete(self, turn: TurnResult) -> None:
        """The turn has ended well."""
        usage = {
            "input_tokens": turn.usage.input_tokens,
            "output_tokens": turn.usage.output_tokens,
            "total_tokens": turn.usage.input_tokens + turn.usage.output_tokens,
        }
        self._session_id = turn.session_id
        self.end("completed", {"output": turn.text, "usage": usage})

    def end(self, status: Literal["completed", "failed", "cancelled"], outcome: Mapping[str, Any]) -> None:
        """Nothing follows; the first end wins."""
        if self.over:
            return
        self._outcome = dict(outcome)
        self.ended_at = self._clock.monotonic()
        self._become(status)
        self.tell(f"run.{status}", outcome)
        if self._reader is not None:
            self._reader(None)

    def tell(self, name: str, members: Mapping[str, Any]) -> None:
        """Add an event for the reader."""
        now = self._clock.now_ms() / 1000
        self._last_event, self._updated_at = name, now
        event = {"event": name, "run_id": self.run_id, "timestamp": now, **members}
        if self._unread is not None:
            self._unread.append(event)
        elif self._reader is not None:
            self._reader(event)

    def _become(self, status: Status) -> None:
        if self._status == "stopping" and status not in _OVER:
            return
        self._status = status
        self._updated_at = self._clock.now_ms() / 1000


class Runs:
    """The runs of one endpoint."""

    def __init__(self, *, turns: Turns, clock: Clock) -> None:
        self._turns = turns
        self._clock = clock
        self._runs: dict[str, Run] = {}

    def start(self, run_id: str, order: Order, *, model: str) -> Run:
        """Start a run; raises TooManyTurns."""
        self._forget()
        self._turns.check_capacity()
        run = Run(run_id, session_id=order.session_id, model=model, clock=self._clock)
        self._runs[run_id] = run
        run.task = self._turns.start(self._execute(run, replace(order, listener=run.hear, approver=run)))
        # A task that is stopped before its first step never gets to say so itself.
        run.task.add_done_callback(lambda _task: run.end("cancelled", {}))
        return run

    def find(self, run_id: str) -> Run:
        """Return a run. Raises UnknownRun."""
        self._forget()
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRun(run_id) from None

    async def _execute(self, run: Run, order: Order) -> None:
        try:
            run.complete(await self._turns.take(order))
        except Exception as exc:  # a run tells its failure itself: nobody waits for the task
            run.end("failed", {"error": _reason(exc)})
            raise

    def _forget(self) -> None:
        now = self._clock.monotonic()
        for run in list(self._runs.values()):
            if run.ended_at is not None and now - run.ended_at > _KEPT_S:
                del self._runs[run.run_id]
            else:
                run.drop_unread()


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
