"""Rules about one session row: one that was to be made, changed or deleted. Source: design §5."""

from __future__ import annotations

from typing import Final

from aip_hermes.contract.reconciliation import Verdict
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.listings import started_since
from aip_hermes.hermes.session_rows import SessionRow
from aip_hermes.hermes.traces import name_of
from aip_hermes.hermes.wanted import sha256_text
from aip_hermes.hermes.wording import shown

__all__ = ["session_gone", "session_patch", "session_row"]

_API: Final = "api_server"


async def session_row(case: Case) -> Verdict:
    """A row was to be made. The title supports only: it may have been changed since."""
    session_id = case.identity("new_session_id")
    if session_id is None:
        return await _by_title(case)
    row = await case.reading.row(session_id)
    if row is None:
        return case.after_quiet("not_applied", "no_row", f"the endpoint has no session {shown(session_id)}")
    if row.source != _API:
        return case.undecided(
            "another_row", f"session {shown(session_id)} has another source, so that it may be somebody else's row"
        )
    if row.parent_session_id is not None:
        return case.undecided("another_row", f"session {shown(session_id)} is a child, which no create makes")
    if row.started_at is None or row.started_at < case.timing.since_s:
        return case.undecided(
            "another_row",
            f"session {shown(session_id)} was started before the action was sent: somebody else's row, or the clocks"
            " differ by more than the slack",
        )
    if case.shared("new_session_id"):
        return case.undecided(
            "several_may_be_it",
            f"session {shown(session_id)} exists, and another action asked for the same id about then",
        )
    return case.proven("applied", "row_found", f"session {shown(session_id)} exists and was started since")


async def _by_title(case: Case) -> Verdict:
    """Titles are unique in a store, so a row with the wanted one that was started since is the row."""
    title = case.wanted.get("title_sha256")
    if title is None:
        return case.undecided(
            "no_identity", "neither an id nor a title was asked for, so that no row can be told to be this one"
        )
    rows = [row for row in await started_since(case) if row.title_sha256 == title and row.source == _API]
    if rows and case.shared("title_sha256"):
        return case.undecided(
            "several_may_be_it",
            f"session {shown(rows[0].id)} has the title, and another action asked for it about then",
        )
    if len(rows) == 1:
        return case.proven("applied", "row_found", f"session {shown(rows[0].id)} has the title and was started since")
    return case.undecided("not_found", "no session that was started since has the title; it may have been changed")


async def session_patch(case: Case) -> Verdict:
    """A row was to be changed: title first, then the end reason; the first reason wins."""
    session_id = case.identity("session_id") or ""
    row = await case.reading.row(session_id)
    if row is None:
        return case.undecided("row_gone", f"session {shown(session_id)} is gone, and with it what the change left")
    if not case.same_row(row):
        return case.undecided(
            "another_row", f"session {shown(session_id)} is another row than the one that was changed"
        )
    members = _members(case, row)
    if not members or set(members.values()) == {"no_difference"}:
        return case.undecided("no_difference", "the row had the wanted values before, so that no read tells a change")
    states = set(members.values()) - {"no_difference"}
    told = ", ".join(f"{name}: {state.replace('_', ' ')}" for name, state in members.items())
    if states == {"applied"}:
        return case.proven("applied", "values_found", f"the row differs from before and has the wanted values ({told})")
    if "changed_by_others" in states:
        return case.undecided("changed_by_others", f"somebody else changed the row since ({told})")
    if "applied" in states:
        return case.after_quiet("partially_applied", "some_values_found", f"the row has some wanted values ({told})")
    return case.after_quiet("not_applied", "values_as_before", f"the row has none of the wanted values ({told})")


def _members(case: Case, row: SessionRow) -> dict[str, str]:
    """Return for each wanted member: applied, not_applied, changed_by_others, or no_difference."""
    wanted, before = case.wanted, case.before
    found: dict[str, str] = {}
    if "title_sha256" in wanted:
        was, now, asked = before.get("title_sha256"), row.title_sha256, wanted["title_sha256"]
        if was == asked:
            found["title"] = "no_difference" if now == asked else "changed_by_others"
        else:
            # What another action renamed back looks as if it had never been changed.
            as_before = now == was and not case.renamed(row.id, was)
            found["title"] = "applied" if now == asked else "not_applied" if as_before else "changed_by_others"
    if (asked := wanted.get("end_reason_sha256")) is not None and asked != sha256_text(""):
        reason = row.end_reason
        if before.get("end_reason") is not None or before.get("ended_at") is not None:
            same = _hash_of(before.get("end_reason")) == asked
            found["end_reason"] = "no_difference" if same else "not_applied"
        else:
            # Whoever closed it first has his reason there: another one than ours was before us.
            found["end_reason"] = "applied" if _hash_of(reason) == asked else "not_applied"
    return found


def _hash_of(value: object) -> str | None:
    return sha256_text(value) if isinstance(value, str) else None


async def session_gone(case: Case) -> Verdict:
    """A row was to be deleted."""
    session_id = case.identity("session_id") or ""
    row = await case.reading.row(session_id)
    if row is None:
        return case.proven(
            "applied",
            "row_gone",
            f"the endpoint has no session {shown(session_id)}",
            erases=frozenset({name_of(case.endpoint.id, session_id)}),
        )
    if not case.same_row(row):
        return case.undecided(
            "another_row",
            f"session {shown(session_id)} is a row that was started at another time: deleted and made again by somebody"
            " else, or brought back by a turn that was running",
        )
    return case.after_quiet("not_applied", "row_found", f"session {shown(session_id)} is still there")
