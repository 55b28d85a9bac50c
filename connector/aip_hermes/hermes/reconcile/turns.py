"""Rules about turns and runs that name their session: row first, messages only where the row says that something moved.

Source: design §5, D13, D15, D20.
"""

from __future__ import annotations

from aip_hermes.contract.reconciliation import Verdict
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.listings import found_by_text, text_listing
from aip_hermes.hermes.reconcile.transcripts import Seen, seen_turn
from aip_hermes.hermes.session_evidence import continuation
from aip_hermes.hermes.session_rows import SessionRow
from aip_hermes.hermes.wording import shown

__all__ = ["run_start", "session_turn"]


async def session_turn(case: Case) -> Verdict:
    """A turn in a named session; one without a name is looked for by its text."""
    session_id, text = case.identity("session_id"), case.wanted.get("text_sha256")
    if session_id is None:
        return await text_listing(case)
    if not isinstance(text, str):
        return case.undecided("no_identity", "what was sent has no text by which it could be found")
    row = await case.reading.row(session_id)
    if row is None:
        return _gone(case, session_id)
    if not case.same_row(row):
        return case.undecided("another_row", f"session {shown(session_id)} was deleted and made again since")
    if _nothing_moved(case, row):
        return case.after_quiet(
            "not_applied",
            "nothing_stored",
            f"session {shown(session_id)} has no message more than before",
            over=session_id,
        )
    seen = await _seen(case, row, text)
    if isinstance(seen, Verdict):
        return seen
    done, unknown = _rivals(case, row, text)
    if seen.answered > done + unknown:
        return case.proven(
            "applied",
            "reply_stored",
            f"session {shown(session_id)} holds the message and a finished reply to it",
            over=session_id,
        )
    if seen.matches and (unknown or seen.matches <= done):
        return case.undecided(
            "several_may_be_it",
            f"session {shown(session_id)} holds the message {seen.matches} times, and {done + unknown} other turns said"
            " the same since",
        )
    if seen.matches:
        return case.after_quiet(
            "partially_applied",
            "reply_missing",
            f"session {shown(session_id)} holds the message and no finished reply to it",
            over=session_id,
        )
    if seen.compacted:
        return case.undecided(
            "compacted", f"messages of session {shown(session_id)} were compacted since, this one perhaps among them"
        )
    return case.after_quiet(
        "not_applied",
        "message_missing",
        f"session {shown(session_id)} does not hold the message",
        over=session_id,
    )


def _gone(case: Case, session_id: str) -> Verdict:
    if case.before.get("started_at") is None:
        # The turn itself was to make the session.
        return case.after_quiet(
            "not_applied", "no_row", f"the endpoint has no session {shown(session_id)}", over=session_id
        )
    return case.undecided("row_gone", f"session {shown(session_id)} is gone, and with it what the turn left")


def _nothing_moved(case: Case, row: SessionRow) -> bool:
    """Whether the row proves without its messages that nothing was stored; a compaction moves what a model was paid.

    A row that was compressed into another one since proves nothing: the turn may be in its continuation.
    """
    if row.compressed:
        return False
    worked = case.before.get("worked")
    known = isinstance(worked, list) and None not in worked and list(row.worked) == worked
    return known and row.message_count is not None and row.message_count == case.before.get("message_count")


def _rivals(case: Case, row: SessionRow, text: str) -> tuple[int, int]:
    """Return the turns that said the same; after a compression they may have named any session of the chain."""
    return case.rivals(None if row.compressed else row.id, text)


async def _seen(case: Case, row: SessionRow, text: str) -> Seen | Verdict:
    """Return what of the turn the transcript shows, or why no transcript can show it."""
    transcript = await case.reading.messages(row.id)
    if transcript is None:
        return _gone(case, row.id)
    if transcript.session_id == row.id:
        count = case.before.get("message_count")
        return seen_turn(
            transcript,
            text_sha256=text,
            count_before=count if isinstance(count, int) else None,
            since_s=case.timing.since_s,
            count_now=row.message_count,
        )
    current = await continuation(case.reading.rows, requested=row.id) if row.compressed else None
    if current is None or current != transcript.session_id:
        return case.undecided(
            "transcript_hidden",
            f"the endpoint answers the messages of another session for {shown(row.id)}, and that this continues it is"
            " not proven",
        )
    case.reading.note("continuation", {"session_id": row.id}, {"current_session_id": current})
    return seen_turn(transcript, text_sha256=text, count_before=None, since_s=case.timing.since_s)


async def run_start(case: Case) -> Verdict:
    """A run was to be started. That it was not is never proven: a run that has not said anything leaves no trace."""
    session_id, text = case.identity("session_id"), case.wanted.get("text_sha256")
    if session_id is None:
        if "source_action_id" in case.wanted:
            return case.undecided("answer_unseen", "no read tells which answer to its question a run heard")
        return await found_by_text(case, reply=False)
    row = await case.reading.row(session_id)
    if row is None:
        return case.undecided("not_found", f"the endpoint has no session {shown(session_id)}: the run may be unborn")
    if not case.same_row(row):
        return case.undecided("another_row", f"session {shown(session_id)} was deleted and made again since")
    if not isinstance(text, str):
        # The session is named after the action, so nobody else's run speaks in it.
        return case.proven("applied", "row_found", f"session {shown(session_id)} of the run exists")
    seen = await _seen(case, row, text)
    if isinstance(seen, Verdict):
        return seen
    if seen.matches <= sum(_rivals(case, row, text)):
        return case.undecided("not_found", f"session {shown(session_id)} does not hold what the run was asked")
    return case.proven(
        "applied",
        "run_found",
        f"session {shown(session_id)} holds what the run was asked"
        + (" and a finished reply" if seen.answered else "; the run may go on"),
        over=session_id if seen.answered == seen.matches else None,
    )
