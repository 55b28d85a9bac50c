"""An approval as a person reads it: everything that a decision binds, nothing shortened."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aip_hermes import wire
from aip_hermes.cli.aipctl.hints import who_may_decide
from aip_hermes.cli.aipctl.terminal import json_text, safe_text

__all__ = ["approval_rows", "print_approval"]


def print_approval(
    record: Mapping[str, Any],
    context: Mapping[str, Any],
    *,
    now_ms: int,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print an `approval_record_view` and its context as a table of two columns; long values are folded, never cut.

    context: as `GET …/context` answers it, or `{"not_available": reason}`.
    """
    table = Table(show_header=False, show_lines=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in approval_rows(record, context, now_ms=now_ms):
        # Text, not markup: what a server wrote must not colour or hide a line. Each line was made safe.
        table.add_row(Text(name, style="bold"), Text(value))
    Console(file=file or sys.stdout, width=width, highlight=False).print(table)


def approval_rows(record: Mapping[str, Any], context: Mapping[str, Any], *, now_ms: int) -> Iterator[tuple[str, str]]:
    """Yield label and text of every row; a text may have several lines and holds no foreign control characters."""
    request = _object(record.get("request"))
    payload = _object(record.get("evidence_payload"))
    snapshot = _object(context.get("target_snapshot"))
    yield "approval", safe_text(request.get("id", "?"))
    yield "status", safe_text(record.get("status", "?"))
    yield "capability", safe_text(request.get("capability_id", "?"))
    yield from _where(request, payload, snapshot)
    if "input" in payload:
        yield "exact input", json_text(payload["input"])
        if "transaction" in payload:
            yield "transaction", json_text(payload["transaction"])
    else:
        yield "exact input", _why_no_input(record)
    yield "action", _line(request.get("action_id"), _object(record.get("action_status")).get("state"))
    yield "requester", _principal(request.get("requester"))
    yield "subject", _principal(request.get("subject"))
    if "identity" in request:
        yield "identity", json_text(request["identity"])
    yield "risk", safe_text(request.get("risk", "not stated"))
    yield "reason", safe_text(request.get("reason", ""))
    yield from _policy(record, request, context)
    yield "expires", _expiry(request.get("expires_at"), pending=record.get("status") == "pending", now_ms=now_ms)
    yield "policy hash", safe_text(request.get("policy_hash", "none"))
    if "input_hash" in payload:
        yield "input hash", safe_text(payload["input_hash"])
    yield "target snapshot", json_text(snapshot) if snapshot else "none was taken, or this server does not show it"
    yield from _touches(context)
    yield "asked", safe_text(record.get("created_at", "?"))
    yield from _decisions(record, context)


def _where(
    request: Mapping[str, Any], payload: Mapping[str, Any], snapshot: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """The endpoint as the capability id names it, and the session that the input or the target names."""
    parts = str(request.get("capability_id", "")).split(":")
    yield "endpoint", safe_text(parts[2]) if len(parts) == 4 and parts[0] == "cap" else "not named by the capability"
    session = _object(payload.get("input")).get("session_id", snapshot.get("session_id"))
    yield "session", "none that is shown" if session is None else safe_text(session)


def _why_no_input(record: Mapping[str, Any]) -> str:
    if record.get("status") != "pending":
        return "not shown: erased when the action ended, or not for this token"
    return "not shown to this token: approval:export and approval:sensitive are needed"


def _policy(
    record: Mapping[str, Any], request: Mapping[str, Any], context: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    policy = _object(request.get("policy_snapshot"))
    yield "who may decide", safe_text(who_may_decide(request))
    needed = context.get("approvals_needed", policy.get("minimum_distinct_principals", 1))
    given = context.get("approvals", int(record.get("status") == "approved"))
    yield "approvals", safe_text(f"{given} of {needed} different principals")
    if policy.get("evidence_requirements"):
        yield "evidence needed", safe_text(", ".join(str(item) for item in policy["evidence_requirements"]))
    for item in _list(request.get("evidence")):
        yield f"evidence: {safe_text(item.get('kind'))}", _line(item.get("id"), item.get("hash"), item.get("uri"))


def _expiry(value: Any, *, pending: bool, now_ms: int) -> str:
    if value is None:
        return "never"
    try:
        left_s = (wire.parse_rfc3339(str(value)) - now_ms) // 1000
    except ValueError:
        return safe_text(value)
    if not pending:
        return safe_text(value)
    minutes, seconds = divmod(max(left_s, 0), 60)
    return safe_text(f"{value}  ({'its time is up' if left_s < 0 else f'{minutes} min {seconds} s left'})")


def _touches(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else would be touched, read at the endpoint when it was asked."""
    touches = context.get("touches")
    if not isinstance(touches, Mapping):
        yield "touches besides", safe_text(f"not available: {context.get('not_available') or 'no reason given'}")
        return
    yield "touches besides", f"{json_text(touches)}\nread at {safe_text(context.get('read_at', '?'))}"


def _decisions(record: Mapping[str, Any], context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    latest = _object(record.get("decision"))
    for decision in _list(context.get("decisions")) or ([latest] if latest else []):
        yield (
            "decision",
            _line(decision.get("decision"), _principal(decision.get("approver")), decision.get("decided_at")),
        )
        yield "its id", safe_text(decision.get("decision_id", "none"))
        yield "its reason", safe_text(decision.get("reason", ""))
        for item in _list(decision.get("evidence")):
            yield "its evidence", _line(item.get("kind"), item.get("id"), item.get("hash"), item.get("uri"))
        yield "its constraints", json_text(decision["constraints"]) if decision.get("constraints") else "none"


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _principal(value: Any) -> str:
    principal = _object(value)
    return _line(principal.get("id"), principal.get("kind"))


def _line(*parts: Any) -> str:
    return safe_text("  ".join(str(part) for part in parts if part is not None))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
