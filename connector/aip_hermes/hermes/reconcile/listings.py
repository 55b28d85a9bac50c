"""Finding without an id: in the listing of sessions, in their messages, in the listing of jobs, by what was sent.

A listing is no snapshot, so that what is not in it proves nothing. Source: design §5; Hermes API §3.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from aip_hermes.contract.reconciliation import Verdict
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.reading import number_of
from aip_hermes.hermes.reconcile.transcripts import Seen, seen_turn
from aip_hermes.hermes.session_rows import SessionRow
from aip_hermes.hermes.wanted import sha256_text
from aip_hermes.hermes.wording import shown

__all__ = [
    "found_by_text",
    "job_listing",
    "schedules_of",
    "sent_sha256",
    "started_since",
    "text_listing",
    "unix_seconds",
]

MAX_PAGES: Final = 5
MAX_TRANSCRIPTS: Final = 20


async def _moved_since(case: Case) -> list[Mapping[str, Any]]:
    """Return the listed rows that moved since the action was sent, at most MAX_PAGES pages of them."""
    found: dict[str, Mapping[str, Any]] = {}
    offset = 0
    for _ in range(MAX_PAGES):
        page = await case.reading.page(offset)
        offset += len(page.rows)
        rows = [each for each in page.rows if isinstance(each, Mapping)]
        for row in rows:
            active = number_of(row.get("last_active")) or number_of(row.get("started_at"))
            if isinstance(row.get("id"), str) and (active is None or active >= case.timing.since_s):
                found[row["id"]] = row
        oldest = number_of(rows[-1].get("last_active")) if rows else None
        if not page.more or (oldest is not None and oldest < case.timing.since_s):
            break
    return list(found.values())


async def started_since(case: Case) -> list[SessionRow]:
    """Return the listed rows that were started since the action was sent. Raises: Unread."""
    rows = [SessionRow.of(each) for each in await _moved_since(case)]
    return [row for row in rows if row is not None and (row.started_at or 0) >= case.timing.since_s]


async def _by_text(case: Case) -> list[tuple[str, Seen]]:
    """Return the sessions that moved since and hold the text that was sent, with what of the turn is there.

    Raises: Unread.
    """
    text = case.wanted.get("text_sha256")
    found: list[tuple[str, Seen]] = []
    if text is None:
        return found
    for row in (await _moved_since(case))[:MAX_TRANSCRIPTS]:
        transcript = await case.reading.messages(row["id"])
        if transcript is None or transcript.session_id != row["id"]:
            continue
        seen = seen_turn(transcript, text_sha256=text, count_before=None, since_s=case.timing.since_s)
        if seen.matches:
            found.append((row["id"], seen))
    return found


async def text_listing(case: Case) -> Verdict:
    """A turn whose session or response has an id that only the lost answer named."""
    return await found_by_text(case, reply=True)


async def found_by_text(case: Case, *, reply: bool) -> Verdict:
    """Look for the text that was sent. reply: whether only a finished reply to it shows that it was done."""
    if case.wanted.get("text_sha256") is None:
        return case.undecided("no_identity", "what was sent has no text by which it could be found")
    found = await _by_text(case)
    if len(found) > 1:
        return case.undecided("several_found", f"{len(found)} sessions that moved since hold the text that was sent")
    if not found:
        return case.undecided("not_found", "no session that moved since holds the text that was sent")
    [(session_id, seen)] = found
    others = sum(case.rivals(session_id, case.wanted["text_sha256"], nameless=True))
    if others and (seen.answered if reply else seen.matches) <= others:
        return case.undecided(
            "several_may_be_it",
            f"session {shown(session_id)} holds the text that was sent, and {others} other actions said the same since",
        )
    if reply and not seen.answered:
        return case.undecided(
            "reply_missing", f"session {shown(session_id)} holds the text that was sent, without a finished reply"
        )
    replied = " and a finished reply" if seen.answered else ""
    return case.proven("applied", "text_found", f"session {shown(session_id)} holds the text that was sent{replied}")


_SAID_AS_SENT: Final = ("name", "prompt", "deliver", "skills")


async def job_listing(case: Case) -> Verdict:
    """A job was to be made, whose id only the lost answer named."""
    sent = case.wanted.get("sent_sha256")
    if not isinstance(sent, Mapping) or not sent.keys() & {"name", "prompt"}:
        return case.undecided("no_identity", "neither a name nor a prompt was sent by which a job could be found")
    jobs = [job for job in await case.reading.jobs() if _is_the_job(case, job, sent)]
    for job in jobs:
        case.reading.note("job", {"job_id": str(job.get("id"))}, {"created_at": job.get("created_at")})
    if jobs and case.shared("sent_sha256"):
        return case.undecided(
            "several_may_be_it",
            f"job {shown(str(jobs[0].get('id')))} has what was sent, and another action sent the same",
        )
    if len(jobs) == 1:
        return case.proven("applied", "job_found", f"job {shown(str(jobs[0].get('id')))} has what was sent")
    if jobs:
        return case.undecided("several_found", f"{len(jobs)} jobs that were made since have what was sent")
    return case.undecided("not_found", "no job that was made since has what was sent")


def _is_the_job(case: Case, job: Mapping[str, Any], sent: Mapping[str, str]) -> bool:
    made = unix_seconds(job.get("created_at"))
    if made is None or made < case.timing.since_s:
        return False
    if any(sent_sha256(job.get(name)) != sent[name] for name in _SAID_AS_SENT if name in sent):
        return False
    return "schedule" not in sent or sent["schedule"] in schedules_of(job)


def schedules_of(job: Mapping[str, Any]) -> set[str]:
    """Return hashes of the forms in which a job shows its schedule."""
    schedule = job.get("schedule")
    parts = list(schedule.values()) if isinstance(schedule, Mapping) else [schedule]
    return {sent_sha256(each) for each in (*parts, job.get("schedule_display"))}


def sent_sha256(value: object) -> str:
    """Return the hash of a member as `prepare` took it of a member that was sent."""
    return sha256_text(json.dumps(value, ensure_ascii=True, sort_keys=True))


def unix_seconds(value: object) -> float | None:
    """Return a time of an endpoint, an ISO 8601 text with an offset or a number, in Unix seconds."""
    if not isinstance(value, str):
        return number_of(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.timestamp()
