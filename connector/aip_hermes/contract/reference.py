"""docs/reference/capabilities.md, written from the rows: what a caller may send, and what may come of it.

`python -m aip_hermes.contract.reference` writes the page, `--check` compares it and says what to do when it is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from aip_hermes.contract.operation import Operation
from aip_hermes.contract.rows import load_capability_file, load_target
from aip_hermes.contract.schemas import operation_schema

__all__ = ["PAGE", "main", "reference_page"]

PAGE: Final = Path("docs/reference/capabilities.md")
_CODE: Final = "connector.hermes_agent."

_Holds = Callable[[Operation], bool]


def _always(_row: Operation) -> bool:
    return True


def _reads(row: Operation) -> bool:
    return row.read_only


def _changes(row: Operation) -> bool:
    return not row.read_only


def _streams(row: Operation) -> bool:
    return row.stream != "none"


def _reads_stream(row: Operation) -> bool:
    return _streams(row) and _reads(row)


def _changes_by_stream(row: Operation) -> bool:
    return _streams(row) and _changes(row)


def _turns(row: Operation) -> bool:
    return row.serial in ("turn", "run")


_STREAM_ERRORS: Final[Sequence[tuple[str, str]]] = (
    ("invalid_response", "a frame or the whole stream is too large, or a frame is no UTF-8"),
    ("not_a_stream", "a success that is no stream of events"),
    ("stream_failed", "an event said that the work failed"),
    ("stream_incomplete", "the stream closed without an event that ends it, neither success nor failure"),
    ("stream_truncated", "the stream had not ended after `max_events`"),
    ("stream_publication", "a chunk could not be stored, so the stream was left"),
)

_ERRORS: Final[Sequence[tuple[str, _Holds, str]]] = (
    (
        "configuration_or_input",
        lambda row: row.input != "no_input.json",
        "the input passed its schema and still can't become a request; nothing was sent",
    ),
    ("missing_credential", lambda row: row.auth, "the endpoint has no key configured; nothing was sent"),
    ("tenant_mismatch", _always, "the endpoint belongs to another tenant; nothing was sent"),
    (
        "session_busy",
        lambda row: row.serial != "none",
        "another turn, fork or delete of the session runs; nothing was sent; retryable",
    ),
    (
        "session_superseded",
        _turns,
        "the session ended by compression; nothing was sent; its continuation is in the details where it is proven",
    ),
    ("session_closed", _turns, "the session is closed and the endpoint is set to refuse turns then; nothing was sent"),
    (
        "target_changed",
        lambda row: row.target is not None,
        "the target is not what the approval was asked for; nothing was sent; ask again",
    ),
    ("authentication", _always, "HTTP 401 or 403: the endpoint refused its key; certain"),
    ("remote_rejected", _reads, "another 3xx or 4xx"),
    (
        "remote_rejected",
        lambda row: _changes(row) and row.confirm != "fork",
        "another 3xx or 4xx: certain, unless its body is a page that somebody in between gave: **uncertain**",
    ),
    (
        "remote_rejected",
        lambda row: row.confirm == "fork",
        "another 3xx or 4xx: certain; a 400 that may come after a fork's first steps, or a page that somebody in "
        "between gave: **uncertain**",
    ),
    ("remote_temporary", _reads, "HTTP 408, 429 or 5xx; retryable"),
    (
        "remote_temporary",
        _changes,
        "HTTP 429, and 503 with `gateway_draining` or `session_db_unavailable`: certain and retryable; HTTP 408 and "
        "any other 5xx: **uncertain**",
    ),
    ("transport", _reads, "no connection, or it broke; retryable"),
    ("transport", _changes, "no connection: certain and retryable; it broke after sending: **uncertain**"),
    (
        "invalid_response",
        lambda row: _reads(row) and not _streams(row),
        "a success that is no JSON object, or too large",
    ),
    (
        "invalid_response",
        lambda row: _changes(row) and not _streams(row),
        "a success that is no JSON object, or too large: **uncertain**",
    ),
    *(
        (code, holds, said + mark)
        for code, said in _STREAM_ERRORS
        for holds, mark in ((_reads_stream, ""), (_changes_by_stream, ": **uncertain**"))
    ),
    ("deadline_exceeded", _reads, "the action's time was over"),
    ("deadline_exceeded", _changes, "the action's time was over: certain before sending, **uncertain** after"),
)

_EFFECT_SIGNS: Final[Mapping[str, str]] = {
    "read": "R", "write": "W", "delete": "D", "send_message": "M", "external_network": "N", "code_execution": "X",
}  # fmt: skip

_HEAD: Final = """\
<!-- Written by `python -m aip_hermes.contract.reference` from capabilities.yaml and schemas/. Don't edit it. -->

# Capabilities of a Hermes endpoint

Every endpoint publishes these {count} operations. A capability is named `{prefix}<endpoint id>:<operation>`, as in
`{prefix}primary:session_create`.

- **Effects**: {signs}.
- **Key**: whether an action needs an idempotency key. A required one is remembered for {key_hours} hours, an
  optional one without end; a replay answers the first result and sends nothing.
- **Replay**: whether the same call may be sent again without harm. *Safe* calls are repeated by the connector
  itself, up to three times; every other call, and every stream, is sent once.
- **Approval**: a second person, never the requester, decides within {approval_minutes} minutes.
- A failure is *certain* (nothing happened at the provider) or **uncertain** (it may have happened: query the action,
  read, and only then decide).

The connector's errors are named without their prefix `{code}`. Before the connector is called, an action may
also fail with `action.input_schema_invalid`, `idempotency.required`, `execution.mode_unsupported` or for want of an
approval.
"""


def reference_page() -> str:
    """Return the page as text."""
    file = load_capability_file()
    head = _HEAD.format(
        count=len(file.operations),
        prefix=file.connector.id_prefix,
        signs=", ".join(f"{sign} {effect.replace('_', ' ')}" for effect, sign in _EFFECT_SIGNS.items()),
        key_hours=file.common.required_key_ttl_ms // 3_600_000,
        approval_minutes=file.common.approval.ttl_ms // 60_000,
        code=_CODE,
    )
    return "\n".join([head, *_overview(file.operations), *(line for row in file.operations for line in _section(row))])


def main(arguments: Sequence[str]) -> int:
    """Write the page below the working directory, or compare it. Returns the exit code."""
    text = reference_page()
    if list(arguments) == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE} is not what the rows say; run python -m aip_hermes.contract.reference\n")
        return 1
    if arguments:
        sys.stderr.write("usage: python -m aip_hermes.contract.reference [--check]\n")
        return 2
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


def _overview(rows: Sequence[Operation]) -> Iterator[str]:
    yield from _table(
        ("operation", "request", "risk", "effects", "key", "replay", "modes", "approval", "time limit"),
        (
            (
                f"[`{row.name}`](#{row.name})",
                f"`{row.http}`",
                row.risk,
                " ".join(_EFFECT_SIGNS.get(effect, effect) for effect in row.effects),
                row.key,
                _replay(row),
                " ".join(row.modes),
                "**yes**" if row.approval else "no",
                _time(row),
            )
            for row in rows
        ),
    )


def _section(row: Operation) -> Iterator[str]:
    yield f"## {row.name}"
    yield ""
    yield f"{row.summary} `{row.http}`" + (f" ({row.stability})" if row.stability != "stable" else "")
    yield ""
    yield from (f"- {line}" for line in _facts(row))
    yield ""
    yield "**Input.** " + operation_schema(row.input)["description"]
    yield ""
    yield from _members(operation_schema(row.input))
    for example in operation_schema(row.input)["examples"]:
        yield f"```json\n{json.dumps(example, ensure_ascii=False)}\n```\n"
    yield "**Output.** " + operation_schema(row.output)["description"] + _ours(row)
    yield ""
    yield "**Errors.**"
    yield ""
    yield from _table(("code", "when"), ((f"`{code}`", when) for code, holds, when in _ERRORS if holds(row)))


def _facts(row: Operation) -> Iterator[str]:
    effects = ", ".join(effect.replace("_", " ") for effect in row.effects)
    pii = "with personal data" if row.pii else "without personal data"
    yield f"**Risk** {row.risk}; effects: {effects}; {row.sensitivity} data {pii}{', redacted' if row.redact else ''}"
    yield f"**Replay** {_replay(row)}; **key** {row.key}"
    cancel = "cancel offered" if row.cancel else "no cancel offered"
    yield f"**Modes** {', '.join(row.modes)}; {cancel}; time limit {_time(row)}"
    if row.approval is not None:
        yield f"**Approval** needed: {row.approval}" + _snapshot(row)
    if row.serial == "exclusive":
        yield "**Order** alone: waits for turns, forks and deletes of the same session"
    elif row.serial == "turn":
        yield "**Order** one turn, fork or delete of a named session at a time"
    elif row.serial == "run":
        yield "**Order** as a turn of the session that it names, which then stays closed to forks and deletes"
    if row.session_place is not None:
        yield f"**Session** `session_id` is optional and travels in the {row.session_place}; its row is read first"


def _snapshot(row: Operation) -> str:
    if row.target is None:
        return ""
    target = load_target(row.target)
    compared = ", ".join(f"`{name}`" for name in target.compared)
    return f" It binds what `GET {target.path}` shows; nothing is sent when {compared} changed since."


def _ours(row: Operation) -> str:
    ours = []
    if row.session != "none":
        ours.append("`session` (requested and effective id, and why they differ)")
    if row.turn:
        ours.append("`turn` (how much of it was stored, as far as that was read)")
    if row.confirm == "fork":
        ours.append("`fork` (both sides, read back)")
    if row.method == "PATCH" and row.session != "none":
        ours.append("`patch` (what was asked, what holds)")
    return f" Under `_aip`: {', '.join(ours)}." if ours else ""


def _replay(row: Operation) -> str:
    return "safe" if row.read_only else "unsafe"


def _time(row: Operation) -> str:
    seconds = f"{row.timeout_ms // 1000} s"
    return f"`turn_timeout` ({seconds})" if row.turn else seconds


def _members(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of an input's members, those of its nested objects by their path."""
    if not schema["properties"]:
        return
    rows = [(f"`{name}`", kind, told) for name, kind, told in _walk(schema, schema, "") if kind != "nothing"]
    yield from _table(("member", "kind", "what it is"), rows)
    closed = schema.get("additionalProperties") is False
    refused = [_quoted(name) for name, kind, _ in _walk(schema, schema, "") if kind == "nothing"]
    said = ["Nothing else is accepted."] if closed else []
    said += [f"Refused because it would have no effect: {', '.join(refused)}."] if refused else []
    beside = schema.get("dependentSchemas", {}).get("body", {}).get("properties", {})
    if beside:
        said.append(f"Refused beside `body`, of which alone the request is made: {', '.join(map(_quoted, beside))}.")
    if said:
        yield " ".join(said)
        yield ""


def _quoted(name: str) -> str:
    return f"`{name}`"


def _walk(schema: Mapping[str, Any], whole: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, member in schema.get("properties", {}).items():
        piece = _settled(member, whole)
        needed = " Required." if name in schema.get("required", ()) else ""
        text = str(piece.get("description", "")) or ("Its members stand below." if "properties" in piece else "")
        yield prefix + name, _kind(piece), _sentence(text) + needed
        yield from _walk(piece, whole, f"{prefix}{name}.")


def _settled(member: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references; what stands beside one wins."""
    if "$ref" not in member:
        return member
    piece = whole["$defs"][member["$ref"].rpartition("/")[2]]
    return {**_settled(piece, whole), **{name: value for name, value in member.items() if name != "$ref"}}


def _kind(piece: Mapping[str, Any]) -> str:
    if piece.get("not") == {}:
        return "nothing"
    if "const" in piece:
        return f"`{json.dumps(piece['const'])}`"
    if "type" not in piece and "allOf" in piece:
        return "string"
    kinds = piece.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _sentence(text: str) -> str:
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def _table(head: Sequence[str], rows: Any) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for cells in rows:
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
    yield ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
