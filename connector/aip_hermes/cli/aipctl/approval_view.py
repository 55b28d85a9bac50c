"""An approval record as a person reads it: everything that a decision binds, nothing shortened."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aip_hermes.cli.aipctl.hints import who_may_decide
from aip_hermes.cli.aipctl.terminal import json_text, safe_text

__all__ = ["approval_rows", "print_approval"]


def print_approval(record: Mapping[str, Any], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print an `approval_record_view` as a table of two columns; long values are folded, never cut."""
    table = Table(show_header=False, show_lines=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in approval_rows(record):
        # Text, not markup: what a server wrote must not colour or hide a line. Each line was made safe.
        table.add_row(Text(name, style="bold"), Text(value))
    Console(file=file or sys.stdout, width=width, highlight=False).print(table)


def approval_rows(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield label and text of every row; a text may have several lines and holds no foreign control characters."""
    request = _object(record.get("request"))
    policy = _object(request.get("policy_snapshot"))
    payload = _object(record.get("evidence_payload"))
    yield "approval", safe_text(request.get("id", "?"))
    yield "status", safe_text(record.get("status", "?"))
    yield "capability", safe_text(request.get("capability_id", "?"))
    if "input" in payload:
        yield "exact input", json_text(payload["input"])
        if "transaction" in payload:
            yield "transaction", json_text(payload["transaction"])
    else:
        yield "exact input", "not shown to this token"
    yield "action", _line(request.get("action_id"), _object(record.get("action_status")).get("state"))
    yield "requester", _principal(request.get("requester"))
    if _principal(request.get("subject")) != _principal(request.get("requester")):
        yield "on behalf of", _principal(request.get("subject"))
    if "identity" in request:
        yield "identity", json_text(request["identity"])
    yield "risk", safe_text(request.get("risk", "not stated"))
    yield "reason", safe_text(request.get("reason", ""))
    yield "who may decide", safe_text(who_may_decide(request))
    if policy.get("evidence_requirements"):
        yield "evidence needed", safe_text(", ".join(str(item) for item in policy["evidence_requirements"]))
    for item in request.get("evidence", []):
        if isinstance(item, Mapping):
            yield f"evidence: {safe_text(item.get('kind'))}", _line(item.get("id"), item.get("hash"), item.get("uri"))
    yield "expires", safe_text(request.get("expires_at", "never"))
    yield "policy hash", safe_text(request.get("policy_hash", "none"))
    if "input_hash" in payload:
        yield "input hash", safe_text(payload["input_hash"])
    yield "asked", safe_text(record.get("created_at", "?"))
    decision = _object(record.get("decision"))
    if decision:
        yield (
            "decision",
            _line(decision.get("decision"), _principal(decision.get("approver")), decision.get("decided_at")),
        )
        yield "its reason", safe_text(decision.get("reason", ""))
        if decision.get("constraints"):
            yield "its constraints", json_text(decision["constraints"])


def _principal(value: Any) -> str:
    principal = _object(value)
    return _line(principal.get("id"), principal.get("kind"))


def _line(*parts: Any) -> str:
    return safe_text("  ".join(str(part) for part in parts if part is not None))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
