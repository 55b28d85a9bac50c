"""What goes with time: text after its hours, and, by a command, whatever is older than the operator wants to keep.

Never touched: unfinished actions, fences that still answer, approvals that wait, receipts and the audit log. Of a
mutation a slim row stays: its Action ID never runs twice, and a query says that its result is gone. A read goes whole.
What a connector kept about a call goes when it is that old and nothing unfinished can have written it.
Source: design D23, §6; runtime behaviour §19.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.database import Connection, Store
from aip_hermes.ports import Clock
from aip_hermes.runtime.erasure import erase, kept_result
from aip_hermes.runtime.store import QUERIES

__all__ = ["AT_ONCE", "Pruned", "erase_expired", "prune"]

AT_ONCE: Final = 200
"""Actions of one transaction: others get their turn in between."""

_TABLES: Final = (
    "actions", "results", "chunks", "events", "verdicts", "idempotency_keys", "message_ids", "connector_state"
)  # fmt: skip

_Place = tuple[str, str]
_Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """What a pruning removed, or would remove.

    rows: table → rows; `results` are outputs that were erased from rows that stay. dry_run: nothing was changed.
    """

    rows: Mapping[str, int]
    dry_run: bool

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def erase_expired(connection: Connection, *, now: int, keep_ms: int, limit: int = AT_ONCE) -> int:
    """Erase text that has been kept for `keep_ms`, at most of `limit` actions; return of how many.

    Call it again while it returns `limit`.
    """
    rows = connection.execute(QUERIES["fetch_expired_text"], {"before": now - keep_ms, "limit": limit})
    for row in rows:
        erase(connection, row, reason="expired", now=now)
    return len(rows)


async def prune(database: Store, *, older_than_ms: int, clock: Clock, dry_run: bool = False) -> Pruned:
    """Remove what settled more than `older_than_ms` (an age, milliseconds, at least 0) ago.

    A server may run on the same store meanwhile. Raises: ValueError, StoreFailure; what was removed by then stays so.
    """
    if older_than_ms < 0:
        raise ValueError("older_than_ms is an age: 0 or more")
    now = clock.now_ms()
    before = now - older_than_ms
    run = database.read if dry_run else database.write
    rows = dict.fromkeys(_TABLES, 0)
    after: _Place | None = ("", "")
    while after is not None:
        place = after

        def some(connection: Connection) -> tuple[dict[str, int], _Place | None]:
            return _prune_some(connection, after=place, before=before, now=now, dry_run=dry_run)  # noqa: B023

        counts, after = await run(some)
        _add(rows, counts)
    _add(rows, await run(lambda connection: _prune_rest(connection, before=before, now=now, dry_run=dry_run)))
    return Pruned(rows=rows, dry_run=dry_run)


def _prune_some(
    connection: Connection, *, after: _Place, before: int, now: int, dry_run: bool
) -> tuple[dict[str, int], _Place | None]:
    """Take the next few actions; return the counts, and the place to go on from or None."""
    place = {"after_tenant": after[0], "after_action": after[1]}
    found = connection.execute(QUERIES["fetch_prunable"], {**place, "before": before, "now": now, "limit": AT_ONCE})
    newest = connection.execute(QUERIES["last_event"])
    log_end = newest[0]["seq"] if newest else 0
    rows: dict[str, int] = {}
    for row in found:
        _add(rows, _prune_action(connection, row, log_end=log_end, now=now, dry_run=dry_run))
    return rows, (found[-1]["tenant"], found[-1]["action_id"]) if len(found) == AT_ONCE else None


def _prune_action(connection: Connection, row: _Row, *, log_end: int, now: int, dry_run: bool) -> dict[str, int]:
    address = {"tenant": row["tenant"], "action_id": row["action_id"]}
    in_log = {**address, "newest": log_end}
    holds_output = "output" in (kept_result(connection, row) or {})
    rows = {
        "events": connection.execute(QUERIES["count_events"], in_log)[0]["found"],
        "chunks": connection.execute(QUERIES["count_chunks"], address)[0]["found"],
        "verdicts": connection.execute(QUERIES["count_verdicts"], in_log)[0]["found"],
        "actions": int(row["read_only"]),
        "results": int(holds_output and not row["read_only"]),
    }
    if dry_run:
        return rows
    if rows["events"]:
        last = connection.execute(QUERIES["last_event_of_action"], in_log)[0]["seq"]
        connection.execute(QUERIES["drop_events"], in_log)
        connection.execute(QUERIES["move_log_start"], {"tenant": row["tenant"], "through": last})
    connection.execute(QUERIES["drop_verdicts"], in_log)
    erase(connection, row, reason="pruned", now=now)
    if row["read_only"]:
        connection.execute(QUERIES["drop_action"], address)
    return rows


def _prune_rest(connection: Connection, *, before: int, now: int, dry_run: bool) -> dict[str, int]:
    rows = {
        "idempotency_keys": connection.execute(QUERIES["count_expired_keys"], {"before": min(before, now)})[0]["found"],
        "message_ids": connection.execute(QUERIES["count_expired_messages"], {"now": now})[0]["found"],
        "connector_state": connection.execute(QUERIES["count_old_state"], {"before": before})[0]["found"],
    }
    if not dry_run:
        connection.execute(QUERIES["drop_expired_keys"], {"before": min(before, now)})
        connection.execute(QUERIES["drop_expired_messages"], {"now": now})
        connection.execute(QUERIES["drop_old_state"], {"before": before})
    return rows


def _add(rows: dict[str, int], more: Mapping[str, int]) -> None:
    for table, count in more.items():
        rows[table] = rows.get(table, 0) + count
