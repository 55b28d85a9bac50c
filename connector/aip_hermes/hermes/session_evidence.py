"""What can be proven about sessions by reading: where a transcript continues, what a turn stored, what a fork left.

A 2xx of a turn or a fork is the endpoint's word; these reads are the proof, or say that there is none. Nothing here
raises: a read that fails is evidence of its own. Source: design D15, D16, D20.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.session_rows import Rows, SessionRow
from aip_hermes.hermes_api import is_continuation_id

__all__ = [
    "CHAIN_ROWS",
    "Persisted",
    "Reason",
    "continuation",
    "fork_evidence",
    "lineage",
    "patch_evidence",
    "read_row",
    "turn_evidence",
]

CHAIN_ROWS: Final = 20
"""Rows of a chain, both ends counted, beyond which nothing is proven."""

Reason = Literal["none", "compression", "branch", "unknown"]
Persisted = Literal["yes", "user_only", "no", "unknown"]

_NO_TEXT: Final = "no visible output; verify the transcript with session_messages"
_FAILED: Final = "the endpoint says that the turn did not complete; the text may be its error, not an answer"
_USER_ONLY: Final = "only the user's row was stored; the text may be the model's error, not an answer"
_NOT_STORED: Final = "the turn was answered but nothing of it was stored"
_NOT_GROWN: Final = (
    "a model answered, but the transcript did not grow: compacted in place, or not stored; read its messages"
)
_ANOTHER_ROW: Final = "the session was deleted and made again during the turn; read its messages"


async def lineage(rows: Rows, *, requested: str, effective: str, known: SessionRow | None = None) -> Reason:
    """Say why an endpoint answered `effective` where `requested` was asked.

    `compression` only when every row on the parent chain from `effective` back to `requested` ended by compression and
    every row after `requested` has the form of ids that Hermes gives its continuations. No fork of ours can have named
    such a row, since a fork that asks for an id of that form is refused before it is sent. `branch` when the chain
    leads back and a row on it did not end by compression. Else `unknown`, also for a chain over CHAIN_ROWS.

    known: the row of `effective`, if it has been read.
    """
    if effective == requested:
        return "none"
    try:
        chain = await _chain(rows, requested=requested, effective=effective, known=known)
    except HermesFailed:
        return "unknown"
    if chain is None:
        return "unknown"
    if not all(row.compressed for row in chain[1:]):
        return "branch"
    return "compression" if all(is_continuation_id(row.id) for row in chain[:-1]) else "unknown"


async def _chain(rows: Rows, *, requested: str, effective: str, known: SessionRow | None) -> list[SessionRow] | None:
    """Return the rows from `effective` back to `requested`, or None where parents do not lead there in time."""
    chain: list[SessionRow] = []
    wanted: str | None = effective
    while wanted is not None and len(chain) < CHAIN_ROWS:
        row = known if known is not None and not chain else await rows.row(wanted)
        if row.id != wanted:
            return None
        chain.append(row)
        if row.id == requested:
            return chain
        wanted = row.parent_session_id
    return None


async def continuation(rows: Rows, *, requested: str) -> str | None:
    """Return the proven id on which a compressed session goes on, or None."""
    try:
        effective = await rows.resolved(requested)
    except HermesFailed:
        return None
    if effective is None or effective == requested:
        return None
    return effective if await lineage(rows, requested=requested, effective=effective) == "compression" else None


async def read_row(rows: Rows, session_id: str) -> tuple[SessionRow | None, str | None]:
    """Read a row; return it, or None with what stands in its place: `not_found` or `not_read`."""
    try:
        return await rows.row(session_id), None
    except HermesFailed as exc:
        return None, "not_found" if exc.details.get("remote_status") == 404 else "not_read"


def turn_evidence(
    *,
    before: SessionRow | None,
    after: SessionRow | None,
    same_session: bool,
    text: str | None,
    failed: bool = False,
) -> dict[str, Any]:
    """Return `_aip.turn` without what only the caller knows.

    Members: `messages_before`, `messages_after` (null when not read), `persisted`, and `warning` where the answer must
    not be taken for a stored one. text: of the answer; None when there is no answer to judge. failed: the answer says
    of itself that the turn did not complete.
    """
    persisted, doubt = ("unknown", None) if not same_session else _persisted(before, after)
    evidence: dict[str, Any] = {
        "messages_before": before.message_count if before is not None else None,
        "messages_after": after.message_count if after is not None else None,
        "persisted": persisted,
    }
    if text is not None and (warning := _FAILED if failed else doubt if text.strip() else _NO_TEXT) is not None:
        evidence["warning"] = warning
    return evidence


def _persisted(before: SessionRow | None, after: SessionRow | None) -> tuple[Persisted, str | None]:
    """Return how much of a turn one row shows as stored, and what is doubtful about the answer then.

    A count that hardly grew means a failed turn only where no model was counted as used: a transcript compacted in
    place holds the turn and may be no longer than before.
    """
    if before is None or after is None or before.message_count is None or after.message_count is None:
        return "unknown", None
    if None not in (before.started_at, after.started_at) and before.started_at != after.started_at:
        return "unknown", _ANOTHER_ROW
    grown = after.message_count - before.message_count
    if grown in (0, 1) and before.worked != after.worked:
        return "unknown", _NOT_GROWN
    if grown in (0, 1):
        return ("user_only", _USER_ONLY) if grown else ("no", _NOT_STORED)
    return ("yes" if grown > 1 else "unknown"), None


async def fork_evidence(
    rows: Rows,
    *,
    source_id: str,
    child_id: str | None,
    title_sha256: str | None,
    source_before: SessionRow | None,
    refused: bool = False,
) -> dict[str, Any]:
    """Read both sides of a fork and return what stands there.

    `source` and `child`: `{id, read: "found" | "not_found" | "not_read" | "not_named", …}`. `state`: `complete` (source
    ended, child of it with at least its messages and the wanted title), `partial` (some of that), `none` (source as
    before and no child), else `unknown`. title_sha256: of a title that was asked for. refused: the endpoint refused the
    fork; a child without any title is one whose automatic title was what it refused.
    """
    source_read = read_row(rows, source_id)
    child: SessionRow | None = None
    child_gap: str | None = "not_named"
    if child_id is None:
        source, source_gap = await source_read
    else:
        (source, source_gap), (child, child_gap) = await asyncio.gather(source_read, read_row(rows, child_id))
    child_shown = _side(child_id, child, child_gap)
    titled = _titled(child, title_sha256, refused=refused)
    if child is not None:
        child_shown["parent_session_id"] = child.parent_session_id
        child_shown["title_as_wanted"] = titled
    return {
        "source": _side(source_id, source, source_gap),
        "child": child_shown,
        "state": _fork_state(source, source_before, child, child_gap, source_id, titled),
    }


def _titled(child: SessionRow | None, title_sha256: str | None, *, refused: bool) -> bool | None:
    """Whether the child has its title; None where none was asked for and nothing shows that one is missing."""
    if child is None:
        return None
    if title_sha256 is None:
        return False if refused and child.title_sha256 is None else None
    return child.title_sha256 == title_sha256


def _side(session_id: str | None, row: SessionRow | None, gap: str | None) -> dict[str, Any]:
    side: dict[str, Any] = {"id": session_id, "read": gap or "found"}
    if row is not None:
        side |= {"end_reason": row.end_reason, "message_count": row.message_count}
    return side


def _fork_state(
    source: SessionRow | None,
    source_before: SessionRow | None,
    child: SessionRow | None,
    child_gap: str | None,
    source_id: str,
    titled: bool | None,
) -> Literal["complete", "partial", "none", "unknown"]:
    if source is None:
        return "unknown"
    if child is None:
        if child_gap != "not_found" or source_before is None:
            return "unknown"
        return "none" if source.end_reason == source_before.end_reason else "partial"
    if child.parent_session_id != source_id:
        return "unknown"  # somebody else's row under that id
    copied = (
        source.message_count is not None
        and child.message_count is not None
        and child.message_count >= source.message_count
    )
    return "complete" if source.ended and copied and titled is not False else "partial"


def patch_evidence(
    *, requested: Mapping[str, Any], before: SessionRow | None, session: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return `_aip.patch`: `requested` and `effective` values of the members sent, `changed` and, where a close reason
    was not taken, `note`. None when the answer holds no session. `changed` is null without the row from before.

    Success means that the returned row has what was asked; the first close reason wins (design, field report of a
    rename that changed nothing).
    """
    after = SessionRow.of(session)
    if after is None:
        return None
    members = [name for name in ("title", "end_reason") if name in requested]
    evidence: dict[str, Any] = {
        "requested": {name: requested[name] for name in members},
        "effective": {name: session.get(name) for name in members},
        "changed": None
        if before is None
        else (before.title_sha256, before.end_reason) != (after.title_sha256, after.end_reason),
    }
    reason = requested.get("end_reason")
    if isinstance(reason, str) and reason and before is not None and before.ended:
        evidence["note"] = f"unchanged: already closed as {after.end_reason}"
    elif isinstance(reason, str) and reason != (after.end_reason or ""):
        evidence["note"] = f"the close reason was not taken; it is {after.end_reason or 'empty'}"
    return evidence
