"""The lifecycle of a persisted Hermes session, step by step, each claim verified by reading it back.

Every step says what was sent and what was verified; what the endpoint itself does surprisingly is a note, not hidden.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aip_hermes.cli.demo.relay import Seen
from aip_hermes.cli.demo.step import CheckFailed, Stage, Step, shortened, told
from aip_hermes.client import AipConnection, ClientFailure, PeerError, Reply
from aip_hermes.ids import ActionId, ApprovalId, CapabilityId, HermesSessionId, HermesSessionKey, IdempotencyKey
from aip_hermes.ports import new_id

__all__ = ["CheckFailed", "Stage", "Step", "Walk"]

TURN_TEXT = "Which facts of this case are verified so far? Answer in one sentence."
CHILD_TEXT = "What would an alternative resolution look like? Answer in one sentence."
SYSTEM_PROMPT = "Keep the transcript factual and concise."
CLOSE_REASON = "case_closed"


class Walk:
    """The ten steps and the refusals, in order. `run` stops at the first step that fails.

    left_sessions: whether `source`, and perhaps `child`, may exist at the endpoint.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        run = secrets.token_hex(4)
        self.source = HermesSessionId(f"demo-{run}")
        self.child = HermesSessionId(f"demo-{run}-alternative")
        self.session_key = HermesSessionKey(f"memory-{run}")
        self._title = f"Demo case {run}"
        self._create_id = ActionId(new_id("act_"))
        self._create_key = IdempotencyKey(f"session-create-{run}")
        self._copied = 0
        self.left_sessions = False

    def steps(self) -> list[tuple[str, str, Callable[[Step], Awaitable[None]]]]:
        """Number, title and body of each step."""
        return [
            ("1", "discover", self._discover),
            ("2", "allocate identities", self._identities),
            ("3", "create", self._create),
            ("3b", "same key again", self._replay),
            ("4", "exact row, then list", self._read),
            ("5", "one bounded turn", self._turn),
            ("6", "transcript", self._messages),
            ("7", "patch the title", self._patch),
            ("8", "fork", self._fork),
            ("9", "turn on the child", self._child_turn),
            ("10a", "close, first reason wins", self._close),
            ("10b", "delete, second person", self._delete),
            ("11", "refused, nothing sent", self._refusals),
        ]

    async def run(self, tell: Callable[[Step], None]) -> list[Step]:
        """Walk; `tell` gets each step when it has ended. The last one has `failure` set when it did not hold."""
        done: list[Step] = []
        for number, title, body in self.steps():
            step = Step(number=number, title=title)
            before = len(self._stage.relay.seen)
            try:
                await body(step)
            except CheckFailed as failed:
                step.failure = str(failed)
            except (ClientFailure, LookupError, TypeError) as failed:
                step.failure = told(failed)
            if step.failure and self._stage.relay.trouble:
                step.failure += f" (nothing got through to the endpoint: {self._stage.relay.trouble})"
            step.requests = self._stage.relay.seen[before:]
            done.append(step)
            tell(step)
            if step.failure:
                break
        return done

    # The steps. Each begins with what it sends.

    async def _discover(self, step: Step) -> None:
        prefix = f"cap:hermes_agent:{self._stage.endpoint_id}:session"
        step.sent = f"capabilities with {prefix}"
        page = await self._stage.requester.capabilities(text=prefix, limit=20)
        found = {entry["capability"]["id"]: entry["capability"] for entry in page["capabilities"]}
        wanted = ("create", "get", "patch", "messages", "fork", "chat", "delete")
        step.check(
            f"{len(found)} capabilities of the session family",
            all(f"{prefix}_{name}" in found for name in wanted) and f"{prefix}s_list" in found,
            sorted(found),
        )
        delete = found[f"{prefix}_delete"]
        step.check(
            "delete declares high risk, a required key and an approval",
            delete["risk"] == "high"
            and delete["contract"]["idempotency"]["requirement"] == "required"
            and delete["requires_human_approval"],
            delete["risk"],
        )

    async def _identities(self, step: Step) -> None:
        step.sent = "nothing"
        identities = (self._create_id, self._create_key, self.source, self.session_key)
        step.check("action id, key, session id and session key are four things", len(set(identities)) == 4)
        step.check("nothing reached the endpoint yet", not self._stage.relay.seen, self._stage.relay.seen)

    async def _create(self, step: Step) -> None:
        body = {"id": self.source, "title": self._title, "model": "hermes-agent", "system_prompt": SYSTEM_PROMPT}
        before = len(self._stage.relay.seen)
        self.left_sessions = True
        reply = await self._call(
            step, "session_create", {"body": body}, action_id=self._create_id, key=self._create_key
        )
        error = (reply.result or {}).get("error") or {}
        self.left_sessions = not error or bool((error.get("details") or {}).get("uncertain_outcome"))
        session = self._output(step, reply)["session"]
        step.check("the returned id is the intended one", session["id"] == self.source, session["id"])
        step.check("one mutating request", len(self._mutating(self._stage.relay.seen[before:])) == 1)

    async def _replay(self, step: Step) -> None:
        before = len(self._stage.relay.seen)
        other = {"body": {"id": f"{self.source}-other"}}
        reply = await self._call(step, "session_create", other, key=self._create_key)
        output = self._output(step, reply)
        step.check("marked as a replay", output.get("idempotent_replay") is True, sorted(output))
        assert reply.result is not None  # noqa: S101 - _output has checked it
        step.check("the original Action ID", reply.result["action_id"] == self._create_id, reply.result["action_id"])
        differs = output["_aip"]["replay"]["input_differs"]
        step.check("it says that the input differs", differs is True, differs)
        step.check("nothing sent", len(self._stage.relay.seen) == before)

    async def _read(self, step: Step) -> None:
        row = await self._row(step, self.source)
        step.check("title and source api_server", (row["title"], row["source"]) == (self._title, "api_server"), row)
        step.check("system prompt flagged, not shown", row["has_system_prompt"] is True and "system_prompt" not in row)
        step.check("open and empty", row["ended_at"] is None and row["message_count"] == 0, row)
        listed = await self._listed(step, self.source)
        step.check("the list shows the same row", listed is not None and listed["title"] == self._title, listed)

    async def _turn(self, step: Step) -> None:
        turn = {
            "session_id": self.source,
            "message": TURN_TEXT,
            "system_message": "Do not call tools.",
            "session_key": self.session_key,
        }
        output = self._output(step, await self._call(step, "session_chat", turn))
        self._check_turn(step, output, self.source)

    async def _messages(self, step: Step) -> None:
        answer = self._output(step, await self._call(step, "session_messages", {"session_id": self.source}))
        step.check("the effective id is the session", answer["session_id"] == self.source, answer["session_id"])
        self._check_rows(step, answer["data"], TURN_TEXT)

    async def _patch(self, step: Step) -> None:
        self._title += ", reviewed"
        reply = await self._call(
            step, "session_patch", {"session_id": self.source, "title": self._title}, key=self._key("patch")
        )
        self._output(step, reply)
        row = await self._row(step, self.source)
        step.check("the title reads back", row["title"] == self._title, row["title"])

    async def _fork(self, step: Step) -> None:
        before = self._output(step, await self._call(step, "session_messages", {"session_id": self.source}))["data"]
        fork = {"session_id": self.source, "body": {"id": self.child, "title": f"{self._title}, alternative"}}
        output = self._output(step, await self._call(step, "session_fork", fork, key=self._key("fork")))
        session = output["session"]
        step.check("the child has the intended id", session["id"] == self.child, session["id"])
        step.check("its parent is the source", session["parent_session_id"] == self.source, session)
        source = await self._row(step, self.source)
        step.check("the source ended as branched", source["end_reason"] == "branched", source["end_reason"])
        copied = self._output(step, await self._call(step, "session_messages", {"session_id": self.child}))["data"]
        step.check(
            f"{len(before)} messages copied",
            [(m["role"], m["content"]) for m in copied] == [(m["role"], m["content"]) for m in before],
            len(copied),
        )
        self._copied = len(copied)

    async def _child_turn(self, step: Step) -> None:
        source_before = await self._row(step, self.source)
        turn = {"session_id": self.child, "message": CHILD_TEXT}
        self._check_turn(step, self._output(step, await self._call(step, "session_chat", turn)), self.child)
        rows = self._output(step, await self._call(step, "session_messages", {"session_id": self.child}))["data"]
        self._check_rows(step, rows, CHILD_TEXT)
        step.check("the child grew by the turn", len(rows) >= self._copied + 2, len(rows))
        source = await self._row(step, self.source)
        step.check(
            "the source row did not grow",
            source["message_count"] == source_before["message_count"],
            source["message_count"],
        )
        answer = self._output(step, await self._call(step, "session_messages", {"session_id": self.source}))
        if answer["session_id"] == self.source:
            step.check("the source's transcript is its own", len(answer["data"]) == self._copied, len(answer["data"]))
            return
        reason = answer["_aip"]["session"]["reason"]
        step.check("the other id is not called a continuation", reason in ("branch", "unknown"), reason)
        step.notes.append(f"this endpoint answers a read of a forked source with its child ({answer['session_id']})")

    async def _close(self, step: Step) -> None:
        for reason in (CLOSE_REASON, "another_reason"):
            patch = {"session_id": self.child, "end_reason": reason}
            reply = await self._call(step, "session_patch", patch, key=self._key(f"close-{reason}"))
            session = self._output(step, reply)["session"]
            step.check(f"{reason}: closed as {CLOSE_REASON}", session["end_reason"] == CLOSE_REASON, session)

    async def _delete(self, step: Step) -> None:
        action_id = ActionId(new_id("act_"))
        before = len(self._stage.relay.seen)
        reply = await self._call(
            step, "session_delete", {"session_id": self.child}, action_id=action_id, key=self._key("delete")
        )
        step.check("waits for an approval", reply.outcome == "pending", reply.outcome)
        step.check("nothing changed yet", not self._mutating(self._stage.relay.seen[before:]))
        assert reply.result is not None  # noqa: S101 - a pending outcome has a result
        approval_id = ApprovalId(reply.result["output"]["approval_id"])
        await self._own_approval_is_refused(step, approval_id)
        await self._reviewer_approves(step, approval_id, action_id)
        result = (await self._stage.requester.result(action_id))["action_result"]
        step.check("the same Action is completed", result["status"] == "completed", result["status"])
        sent = self._mutating(self._stage.relay.seen[before:])
        step.check("exactly one DELETE reached the endpoint", [seen.method for seen in sent] == ["DELETE"], sent)
        gone = await self._call(step, "session_get", {"session_id": self.child})
        provider = (gone.result or {}).get("error", {}).get("details", {}).get("provider", {})
        step.check("the row is gone (404)", provider.get("status") == 404, gone.body)
        parent = await self._row(step, self.source)
        step.check("the preserved parent is still there", parent["id"] == self.source, parent)

    async def _own_approval_is_refused(self, step: Step, approval_id: ApprovalId) -> None:
        try:
            await self._stage.requester.decide(approval_id, decision="approved", reason="my own request")
        except PeerError as refused:
            code = (refused.details or {}).get("code")
            step.check(
                f"the requester's own approval is refused ({code})",
                refused.code == "auth.not_authorized" and code == "policy.separation_of_duties.requester",
                (refused.code, code),
            )
        else:
            raise CheckFailed("expected: the requester may not approve its own action; seen: approved")

    async def _reviewer_approves(self, step: Step, approval_id: ApprovalId, action_id: ActionId) -> None:
        shown = await self._stage.reviewer.approval(approval_id, include_evidence_payload=True)
        record = shown["approval_record_view"]
        payload, request = record["evidence_payload"], record["request"]
        step.check(
            "the reviewer sees the exact input, its hash, the target and the policy it binds",
            payload["input"]["session_id"] == self.child
            and payload["action_id"] == action_id
            and bool(request["policy_hash"])
            and any(artifact["kind"] == "target_snapshot" for artifact in request["evidence"]),
            payload,
        )
        reply = await self._stage.reviewer.decide(
            approval_id, decision="approved", reason="Case closed; the alternative is no longer needed."
        )
        kinds = [event["kind"] for event in reply.body["events"]]
        step.check("approved, and the parked action ran", kinds[-1] == "aip.action.resumed_result", kinds)

    async def _refusals(self, step: Step) -> None:
        step.sent = "8 requests that must not reach the endpoint"
        before = len(self._stage.relay.seen)
        schema = "action.input_schema_invalid"
        patch = {"session_id": self.source, "color": "red"}
        await self._refused(step, "an unknown patch field", "session_patch", patch, schema)
        for what, identity in (
            ("the id ..", ".."),
            ("an id with a slash", "a/b"),
            ("an id of 257 characters", "x" * 257),
            ("an id with a control character", "a\x1bb"),
        ):
            await self._refused(step, what, "session_create", {"body": {"id": identity}}, schema)
        fine = {"body": {"id": f"{self.source}-never"}}
        await self._refused(step, "a missing key", "session_create", fine, "idempotency.required", keyed=False)
        wrong, other = self._stage.forger, self._stage.stranger
        unauthorized = "auth.native_http_unauthorized"
        await self._refused(step, "a wrong token", "session_create", fine, unauthorized, who=wrong)
        await self._refused(step, "another tenant's token", "session_create", fine, "resource.not_found", who=other)
        step.check(
            "zero requests at the endpoint", len(self._stage.relay.seen) == before, self._stage.relay.seen[before:]
        )

    async def _refused(
        self, step: Step, what: str, operation: str, input: dict[str, Any], code: str,
        *, keyed: bool = True, who: AipConnection | None = None,
    ) -> None:  # fmt: skip
        try:
            reply = await self._send(operation, input, key=self._key("refused") if keyed else None, who=who)
            seen = (reply.result or {}).get("error", {}).get("code")
        except PeerError as refused:
            seen = refused.code
        step.check(f"{what}: {code}", seen == code, seen)

    # What the steps share.

    def _key(self, purpose: str) -> IdempotencyKey:
        return IdempotencyKey(f"{purpose}-{self.source}-{secrets.token_hex(4)}")

    async def _send(
        self, operation: str, input: dict[str, Any], *, key: IdempotencyKey | None = None,
        action_id: ActionId | None = None, who: AipConnection | None = None,
    ) -> Reply:  # fmt: skip
        return await (who or self._stage.requester).call(
            CapabilityId(f"cap:hermes_agent:{self._stage.endpoint_id}:{operation}"),
            input,
            action_id=action_id or ActionId(new_id("act_")),
            idempotency_key=key,
        )

    async def _call(
        self, step: Step, operation: str, input: dict[str, Any], *, key: IdempotencyKey | None = None,
        action_id: ActionId | None = None,
    ) -> Reply:  # fmt: skip
        if operation not in step.sent.split(", "):
            step.sent = f"{step.sent}, {operation}" if step.sent else operation
        return await self._send(operation, input, key=key, action_id=action_id)

    def _output(self, step: Step, reply: Reply) -> dict[str, Any]:
        result = reply.result or {}
        if result.get("status") != "completed":
            raise CheckFailed(
                told(result["error"]) if result.get("error") else f"not completed: {shortened(reply.body)}"
            )
        return dict(result["output"])

    async def _row(self, step: Step, session_id: HermesSessionId) -> dict[str, Any]:
        output = self._output(step, await self._call(step, "session_get", {"session_id": session_id}))
        return dict(output["session"])

    async def _listed(self, step: Step, session_id: HermesSessionId) -> dict[str, Any] | None:
        """Page until found. The order moves with activity, so a page is no snapshot."""
        offset = 0
        while True:
            query = {"source": "api_server", "limit": 200, "offset": offset}
            output = self._output(step, await self._call(step, "sessions_list", query))
            for row in output["data"]:
                if row["id"] == session_id:
                    return dict(row)
            if not output["has_more"]:
                return None
            offset += len(output["data"])

    def _check_turn(self, step: Step, output: dict[str, Any], session_id: HermesSessionId) -> None:
        step.check("the effective id is the session", output["session_id"] == session_id, output["session_id"])
        step.check("the assistant answered", bool(output["message"]["content"].strip()))
        persisted = output["_aip"]["turn"]["persisted"]
        step.check("both rows were stored", persisted == "yes", output["_aip"]["turn"])

    def _check_rows(self, step: Step, rows: list[dict[str, Any]], text: str) -> None:
        asked = [index for index, row in enumerate(rows) if row["role"] == "user" and row["content"] == text]
        step.check("the user row is the text that was sent", bool(asked), len(rows))
        answers = [row for row in rows[asked[-1] :] if row["role"] == "assistant" and row["finish_reason"]]
        finished = answers[-1]["finish_reason"] if answers else None
        step.check(f"an assistant row follows, finished: {finished}", bool(answers))

    def _mutating(self, seen: list[Seen]) -> list[Seen]:
        return [one for one in seen if one.method not in ("GET", "HEAD")]
