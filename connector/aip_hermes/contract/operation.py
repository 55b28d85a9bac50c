"""One operation of a Hermes endpoint, as `capabilities.yaml` states it.

The row is the only place where a contract value is written. What can be derived is a property here, never a second
member. Special behaviour is a named rule of a row (`body`, `answer`, `prepare`, `confirm`, `serial`, `session`,
`stream`, `stop`, `recovery`, `context`, `reconcile`), implemented once by the connector.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AnswerRule",
    "BodyRule",
    "ConfirmRule",
    "ContextRule",
    "Effect",
    "FollowRule",
    "Mode",
    "Operation",
    "PrepareRule",
    "Reached",
    "ReconcileRule",
    "RecoveryRule",
    "SerialRule",
    "SessionPlace",
    "SessionRule",
    "StopRule",
    "StreamRule",
    "TextRule",
]

Effect = Literal[
    "read", "write", "delete", "send_message", "financial", "identity", "medical", "legal", "external_network",
    "code_execution",
]  # fmt: skip
Mode = Literal["sync", "async", "streaming"]

BodyRule = Literal[
    "none", "members", "message", "completions", "response", "run", "approval_choice", "job", "objective"
]  # fmt: skip
"""What becomes the request body; each rule is a function in hermes/bodies.py. none: there is none. members: the nested
`body`, else the input, without routing members. message: members, and `prompt` or `query` stands in for a missing
`message`. completions: the top level only, one message made of `prompt` or `query` where there are no `messages`, and
`stream` said. response: members with an `input`, and `stream` said. run: members with an `input`. approval_choice:
members with a `choice`. job: members, at least one. objective: the input as a task for an agent, see
hermes/operator/objective.py."""

AnswerRule = Literal["passed", "health"]
"""What becomes of the provider's answer. passed: it is the output, unchanged. health: the output is `{endpoint_id,
status, platform?, version?, http_status, raw}` and the action is completed only when `status` is `ok`."""

PrepareRule = Literal["none", "row", "named", "target"]
"""What is read before sending. none: nothing. row: the session row (D14, D15, D20, reconciliation facts). named: the
same where the call names a session; a missing one is made by the call. target: what the row's `target` says, compared
with the snapshot that the approval was asked for (D25)."""

ConfirmRule = Literal["none", "row", "fork"]
"""What is read after sending. none: nothing. row: the effective session row (D15, D20). fork: source and child
(D16)."""

SerialRule = Literal["none", "turn", "run", "exclusive"]
"""Whether the call takes the lock of the session that it names (D13). turn: as a turn; after an uncertain end it keeps
the session closed to exclusive calls. run: as a turn that goes on after its answer, so that a success closes the
session in the same way. exclusive: as a fork or delete."""

SessionRule = Literal["none", "requested", "answered", "header"]
"""Whether the output carries `_aip.session` (D15). requested: the effective id is the `id` of the answered row, that is
of the member `session`, or of the answer itself where there is no such member (a delete). answered: it is the
`session_id` that the provider answers. header: its response header. A call without an id requests nothing: `requested`
is null there."""

SessionPlace = Literal["header", "body"]
"""Where a `session_id` goes that is no part of the path: `X-Hermes-Session-Id` or a member of the body."""

StreamRule = Literal["none", "session", "completions", "responses", "run"]
"""Which event grammar the answer follows, where it is a stream of server-sent events (D17). none: it is JSON."""

StopRule = Literal["none", "run"]
"""What a cancel stops at the provider. none: nothing can be stopped. run: the run that the path addresses."""

ContextRule = Literal["none", "children"]
"""What is read for whoever decides about an approval (D25). none: nothing. children: the sessions that have the
addressed one as their parent: what a delete would orphan or take along."""

FollowRule = Literal["none", "run"]
"""Whether a call goes on with what its request started. none: the answer is its end. run: the run is bound durably to
the Action ID before it is started, and followed to its end or its question (hermes/operator/)."""

RecoveryRule = Literal["none", "observe"]
"""What becomes of an action that a crash interrupted after its intent (D4). none: it ends uncertain. observe: `send` is
called again, marked as interrupted, and only reads what became of the request."""

ReconcileRule = Literal[
    "none", "session_row", "session_patch", "session_gone", "session_fork", "session_turn", "text_listing", "run_start",
    "run_answer", "target_gone", "target_state", "job_listing", "job_change", "job_due",
]  # fmt: skip
"""What is read after an uncertain end, and what proves the effect (design §5); each rule is a function in
hermes/reconcile/. none: a read, nothing to prove. session_row: the row that was to be made. session_patch: the row
against the one read before. session_gone: that there is no such row. session_fork: source and child. session_turn: row
and messages of the named session, else as text_listing. text_listing: the messages of the sessions that moved since.
run_start: the session that the run speaks in, else as text_listing. run_answer: whether the run still waits.
target_gone: that the row's `target` is no more. target_state: that the `target` has what `reaches` names and had it
not before. job_listing: a job with the fields that were sent. job_change: the job's fields against those sent. job_due:
that the job's next run was moved, or came."""

TextRule = Literal["none", "row", "named", "listed"]
"""Whether an answer holds somebody's text, and about what (D23). row: the row of a session with its title, which goes
when the session is deleted. named: text of a transcript, which is also kept for some hours only, about what path, call
and answer name. listed: such text, also about each row of the answer's `data`."""


class Reached(BaseModel):
    """A state of a target. member: of what is read. values: any of them shows the effect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    member: str
    values: Annotated[tuple[bool | str, ...], Field(min_length=1)]


class Operation(BaseModel):
    """A frozen row. Unknown members stop the start, so that a typo can't pass for a default.

    Times: `http_timeout_s` seconds for one HTTP exchange, `idle_timeout_s` without a byte of a stream; `latency_ms`,
    `timeout_ms` as published in the service level.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    title: str
    """The middle of the published name: `Hermes Agent <title> (<endpoint id>)`."""
    summary: str
    kind: Literal["agent", "tool", "workflow"]
    http: Annotated[str, Field(pattern=r"^(GET|POST|PATCH|DELETE) /")]
    auth: bool = True
    http_timeout_s: Annotated[float, Field(gt=0)] = 30
    idle_timeout_s: Annotated[float, Field(gt=0)] = 90
    """Three times the interval in which Hermes shows that a silent stream lives."""
    input: str
    """File of the input schema in schemas/operations/."""
    output: str
    """File of the output schema in schemas/operations/."""
    query: tuple[str, ...] = ()
    """Members that become the query, from the top level or from `query`."""
    body: BodyRule = "none"
    answer: AnswerRule = "passed"
    risk: Literal["low", "medium", "high", "critical"]
    effects: tuple[Effect, ...]
    sensitivity: Literal["public", "internal", "confidential", "restricted", "regulated"]
    pii: bool
    redact: bool
    key: Literal["required", "optional"]
    modes: tuple[Mode, ...] = ("sync",)
    completion: Literal["sync", "async", "streaming", "any"] = "sync"
    cancel: bool = False
    approval: str | None = None
    """The reason published with the approval policy; None: no approval."""
    latency_ms: Annotated[int, Field(gt=0)] = 5000
    timeout_ms: Annotated[int, Field(gt=0)] = 60000
    turn: bool = False
    """A turn of the agent: the endpoint's `turn_timeout_s` replaces `http_timeout_s` and `timeout_ms` (D18)."""
    async_expected: bool = False
    stability: Literal["stable", "experimental"] = "stable"
    session_place: SessionPlace | None = None
    serial: SerialRule = "none"
    prepare: PrepareRule = "none"
    target: str | None = None
    """What an approval is about: a name in `targets`. None: nothing that could be read."""
    context: ContextRule = "none"
    confirm: ConfirmRule = "none"
    session: SessionRule = "none"
    stream: StreamRule = "none"
    stop: StopRule = "none"
    text: TextRule = "none"
    follow: FollowRule = "none"
    recovery: RecoveryRule = "none"
    reconcile: ReconcileRule = "none"
    reaches: Reached | None = None
    """The state of the `target` that shows the effect, for `reconcile: target_state`."""

    @property
    def method(self) -> str:
        return self.http.split(" ", 1)[0]

    @property
    def path(self) -> str:
        return self.http.split(" ", 1)[1]

    @property
    def transcript(self) -> bool:
        """Whether an answer holds text of a transcript."""
        return self.text in ("named", "listed")

    @property
    def read_only(self) -> bool:
        """No effect beyond reading; such a call may be repeated."""
        return set(self.effects) <= {"read", "external_network"}

    @property
    def streaming(self) -> bool:
        return "streaming" in self.modes
