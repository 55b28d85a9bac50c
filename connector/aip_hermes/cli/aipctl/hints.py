"""What a person should know about an answer, in sentences for stderr. Pure functions of JSON.

Every failure names its code, the identity concerned and the next safe step. What may be sent again is said, what must
not be is said too.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = [
    "about_ack",
    "about_cancel",
    "about_details",
    "about_result",
    "about_status",
    "cancel_command",
    "next_step",
    "while_it_runs",
    "who_may_decide",
]

_MAX_LISTED = 16
_MAX_SHOWN = 240

_KEY_OF_THE_ENDPOINT = (
    "it is the server's key for that Hermes, not your token: whoever runs the server writes the API_SERVER_KEY of that "
    "Hermes into the endpoint's key_file and starts the server anew; `aip-hermes doctor` checks it"
)

_NEXT_STEPS: Mapping[str, str] = {
    "action.cancel_unsupported": "it goes on and can't be stopped; look it up: aipctl action status {url} {action}",
    "action.gone": "the result is no longer kept; read the session itself",
    "action.id_conflict": "this Action ID stands for another request; look it up, or choose a new one",
    "action.input_schema_invalid": "correct the input; the schema: aipctl capability list {url} --capability-id ID",
    "action.not_found": "never received, or of another tenant; compare the spelling of the Action ID",
    "action.result_not_ready": "aipctl action status {url} {action}",
    "approval.not_found": "aipctl approval records {url} --status pending",
    "auth.native_http_unauthorized": "name the token file of the server's set-up: --native-bearer-token-file FILE",
    "auth.not_authorized": "use the token of a principal that may do this; {url}/aip/v1/me tells which one this is",
    "capability.unsupported": "aipctl capability list {url}",
    "connector.hermes_agent.authentication": _KEY_OF_THE_ENDPOINT,
    "connector.hermes_agent.missing_credential": _KEY_OF_THE_ENDPOINT,
    "connector_catalog.stale_cursor": "start the listing again without --cursor",
    "connector_catalog.tenant_required": "this token has no tenant; use one that has",
    "envelope.too_large": "send a smaller input; `aipctl manifest fetch {url}` shows `limits.max_request_bytes`",
    "idempotency.conflict": "this key was used for another request; choose a new one for a new request",
    "idempotency.in_progress": "the same request is running; look it up, do not send it again",
    "idempotency.input_hash_mismatch": "this key was used with another input; choose a new one for a new request",
    "idempotency.required": "choose a key, keep it, and give it: --idempotency-key KEY (or --generate-key)",
    "query.invalid_cursor": "give a cursor of an earlier answer as it was, or none to begin again",
    "reconciliation.not_found": "aipctl action reconcile {url} {action} (it only reads)",
    "replay.message_id": "compare this machine's clock with the server's",
    "resource.not_found": "aipctl capability list {url} --text cap:",
    "stream.cursor_expired": "begin again without --cursor",
}


def next_step(code: str, *, category: str, retryable: bool, url: str, action_id: str | None) -> str | None:
    """Return the next safe step after a certain failure, or None where there is none to recommend."""
    if code == "resource.not_found" and action_id is not None:
        code = "action.not_found"
    fixed = _NEXT_STEPS.get(code)
    if fixed is not None:
        return fixed.format(url=shlex.quote(url), action=action_id or "ACTION_ID")
    if retryable:
        return "the same command may be sent again, with the same Action ID and the same key"
    if category == "auth":
        return _NEXT_STEPS["auth.not_authorized"].format(url=shlex.quote(url))
    return None


def about_details(details: Mapping[str, Any]) -> list[str]:
    """List what the server added: the violated rule, identities, the provider's words, ids that exist, places."""
    lines = []
    for name, value in list(details.items())[:_MAX_LISTED]:
        if value is None or name == "uncertain_outcome":
            continue
        label = "rule" if name == "code" else str(name).replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            lines.append(f"  {label}:")
            lines += [f"    {item}" for item in value[:_MAX_LISTED]]
            if len(value) > _MAX_LISTED:
                lines.append(f"    … and {len(value) - _MAX_LISTED} more")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"  {label}: {text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + '…'}")
    return lines


def about_result(result: Mapping[str, Any], *, url: str, action_id: str, sent_input: Any, outcome: str) -> list[str]:
    """Say what an `action_result` means. Empty for a plain success.

    action_id: as submitted; the result may name another one (a replay). outcome: see `client.Outcome`.
    """
    error = _object(result.get("error"))
    shown = f"{error.get('code', '?')}: {error.get('message', '')}"
    here = shlex.quote(url)
    match outcome:
        case "completed":
            return list(_notices(_object(result.get("output")), sent_input=_object(sent_input), result=result))
        case "pending":
            return list(_pending(result, here=here, action_id=action_id))
        case "uncertain":
            return [
                f"action {action_id}: the outcome is unknown. {shown}",
                *_stopped(result),
                "  it may have taken effect; do not send it again under another Action ID or key",
                f"  next: aipctl action status {here} {action_id}, then read the session that it concerns",
                f"  or let the server look, which only reads: aipctl action reconcile {here} {action_id}",
            ]
        case "cancelled":
            return [f"action {action_id} was cancelled", *_stopped(result)]
        case _:
            step = next_step(
                str(error.get("code", "")),
                category=str(error.get("category", "")),
                retryable=error.get("retryable") is True,
                url=url,
                action_id=action_id,
            )
            return [
                f"action {action_id} failed. {shown}",
                *about_details(_object(error.get("details"))),
                *([f"  next: {step}"] if step else []),
            ]


def about_status(status: Any, *, url: str, action_id: str) -> list[str]:
    """Say what the state of an `action_status` asks for next. Empty where nothing is to do."""
    status = _object(status)
    here = shlex.quote(url)
    match status.get("state"):
        case "unknown":
            return [f"the server never received action {action_id}, or it belongs to another tenant"]
        case "pending_approval" if status.get("result_status") == "requires_human":
            return [f"its run waits for an answer; next: aipctl action result {here} {action_id}"]
        case "pending_approval":
            approval_id = status.get("approval_id")
            if approval_id:
                return [f"next, with a reviewer's token: aipctl approval show {here} {approval_id}"]
            return [f"next, with a reviewer's token: aipctl approval records {here} --status pending"]
        case "completed" | "failed" | "cancelled":
            return [] if "result" in status else [f"next: aipctl action result {here} {action_id}"]
        case "queued":
            return [f"action {action_id} waits for its turn; nothing was sent", *while_it_runs(url, action_id)]
        case "accepted" | "running" | "streaming":
            return [f"action {action_id} is running", *while_it_runs(url, action_id)]
        case "cancelling":
            return [f"action {action_id} is being cancelled", f"  next: aipctl action result {here} {action_id}"]
        case _:
            return []


def about_ack(ack: Mapping[str, Any], *, url: str, action_id: str) -> list[str]:
    """Say what an `ack` means, and how its action is looked up."""
    if ack.get("status") == "rejected":
        return [f"action {action_id} was not accepted: {ack.get('reason', 'no reason given')}"]
    here = shlex.quote(url)
    return [
        f"action {action_id}: {ack.get('reason') or ack.get('status')}",
        f"  next: aipctl action status {here} {action_id}",
        *while_it_runs(url, action_id),
        f"  after that: aipctl action result {here} {action_id}",
    ]


def about_cancel(result: Mapping[str, Any], *, url: str, action_id: str, outcome: str) -> list[str]:
    """Say what the answer to a cancel means: the action's result, cancelled or not."""
    if outcome == "cancelled" or result.get("status") == "cancelled":
        return about_result(result, url=url, action_id=action_id, sent_input=None, outcome=outcome)
    late = f"not cancelled: action {action_id} had ended before, as {result.get('status')}"
    if outcome == "completed":
        return [late]
    return [late, *about_result(result, url=url, action_id=action_id, sent_input=None, outcome=outcome)]


def cancel_command(url: str, action_id: str) -> str:
    """Return the command that cancels an action."""
    return f"aipctl action cancel {shlex.quote(url)} {action_id}"


def while_it_runs(url: str, action_id: str) -> tuple[str, ...]:
    """Say what can be done about an action that the server goes on with, whoever listens."""
    follow = f"aipctl action events {shlex.quote(url)} {action_id} --include-chunks --follow"
    return (f"  it goes on at the server; to follow it: {follow}", f"  to stop it: {cancel_command(url, action_id)}")


def _stopped(result: Mapping[str, Any]) -> Iterator[str]:
    """What the connector said about stopping the action at the provider; nothing where it was not asked."""
    cancel = _object(_object(_object(result.get("output")).get("_aip")).get("cancel"))
    if cancel:
        stopped = "was told to stop" if cancel.get("stopped") is True else "was not stopped"
        note = f": {cancel['note']}" if cancel.get("note") else ""
        yield f"  the provider {stopped}{note}"


def who_may_decide(request: Mapping[str, Any]) -> str:
    """Describe the approvers that an `ApprovalRequest` asks for."""
    policy = _object(request.get("policy_snapshot"))
    rule = _object(policy.get("rule")) or _object(request.get("approver_selector"))
    text = _rule(rule)
    count = policy.get("minimum_distinct_principals")
    if isinstance(count, int) and count > 1:
        text += f"; {count} different principals"
    duties = _object(policy.get("separation_of_duties"))
    if duties.get("requester_must_differ") is True or duties.get("allow_self_approval") is not True:
        text += "; not the requester"
    return text


def _rule(rule: Mapping[str, Any]) -> str:
    kind = rule.get("operator") or rule.get("type")
    nested = (
        [_rule(_object(part)) for part in rule.get("rules", []) if part] if kind in ("all", "any", "quorum") else []
    )
    match kind:
        case "all":
            return f"({' and '.join(nested)})"
        case "any":
            return f"({' or '.join(nested)})"
        case "quorum":
            return f"{rule.get('required')} of ({', '.join(nested)})"
        case "tenant_policy":
            policy = rule.get("policy_id")
            return f"whom the tenant's policy {policy} names" if policy else "whom the tenant's policy names"
        case None:
            return "unknown"
        case _:
            what = rule.get("id") or rule.get("name") or rule.get("system") or rule.get("scope") or "?"
            return f"{str(kind).replace('_', ' ')} {what}"


def _resume(source_action_id: object) -> str:
    return json.dumps({"resume": {"source_action_id": source_action_id, "choice": "once"}}) + " or choice deny"


def _pending(result: Mapping[str, Any], *, here: str, action_id: str) -> Iterator[str]:
    output = _object(result.get("output"))
    request = _object(output.get("approval_request"))
    approval_id = output.get("approval_id") or _object(_object(result.get("error")).get("details")).get("approval_id")
    if not approval_id and output.get("source_action_id"):
        yield f"the run of action {output['source_action_id']} waits for an answer to what it asks; it has not ended"
        yield f"  next: a new action on the same capability, with the input {_resume(output['source_action_id'])}"
        return
    if not approval_id:
        yield f"action {action_id} waits for a person"
        yield f"  next: aipctl action status {here} {action_id}"
        return
    yield f"action {action_id} waits for a decision on {approval_id}; nothing has been sent to the provider"
    if request.get("reason"):
        yield f"  reason: {request['reason']}"
    if request:
        yield f"  who may decide: {who_may_decide(request)}"
    if request.get("expires_at"):
        yield f"  expires: {request['expires_at']}"
    yield f"  next, with a reviewer's token: aipctl approval show {here} {approval_id}"
    yield f"    then: aipctl approval approve {here} {approval_id} --reason TEXT   (or deny)"
    yield f"  after that: aipctl action result {here} {action_id}"


def _notices(output: Mapping[str, Any], *, sent_input: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    """What a success does not show at first sight."""
    ours = _object(output.get("_aip"))
    if output.get("idempotent_replay") is True:
        replay = _object(ours.get("replay"))
        original = replay.get("original_action_id") or result.get("action_id")
        yield f"replayed: the stored result of action {original}; nothing was sent to the provider"
        if replay.get("input_differs") is True:
            yield "  the input differs from the one that this result answers"
    session = _object(ours.get("session"))
    if session.get("reason") not in (None, "none"):
        yield (
            f"session {session.get('requested')} was answered by session {session.get('effective')}"
            f" (reason: {session.get('reason')})"
        )
    yield from _unchanged(output, sent_input)
    message = output.get("message")
    if isinstance(message, Mapping) and message.get("role") == "assistant" and not _has_text(message.get("content")):
        yield "the assistant's answer is empty; read the transcript before sending the turn again"
    if output.get("text") == "" and "terminal" in output:
        yield "(no assistant text): the turn ended without any; read the transcript before sending it again"
    persisted = _object(ours.get("turn")).get("persisted")
    if persisted in ("no", "user_only"):
        stored = "nothing of this turn" if persisted == "no" else "only the user's message"
        yield f"the session stored {stored}; read the transcript before sending the turn again"


def _unchanged(output: Mapping[str, Any], sent_input: Mapping[str, Any]) -> Iterator[str]:
    """Compare what a patch asked for with the row that came back; a success means both are equal."""
    wanted = _object(sent_input.get("body")) or sent_input
    row = _object(output.get("session"))
    reason, effective = wanted.get("end_reason"), row.get("end_reason")
    if isinstance(reason, str) and effective is not None and effective != reason:
        yield f"unchanged: already closed as {effective}, so {reason} was not recorded"
    title = wanted.get("title")
    if isinstance(title, str) and "title" in row and row["title"] != title:
        yield f"the title is not as asked, it reads: {row['title']}"


def _has_text(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
