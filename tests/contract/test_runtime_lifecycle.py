"""The table of legal moves: every statement that changes a state is in it, and does what it says and no more."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import Connection, Database
from aip_hermes.runtime.lifecycle import MOVES, STATES, TERMINAL, Guard, Move, State
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS, QUERIES

NOW = 1_893_456_000_000
PARAMS: Mapping[str, Any] = {
    "tenant": "tenant-a",
    "action_id": "act_1",
    "attempt": 1,
    "lease": 1,
    "approval_id": "appr_1",
    "now": NOW,
    "limit": 10,
    "owner": "worker:1",
    "until": NOW + 30_000,
    "intent_at": None,
    "read_only": 0,
    "reserved_until": NOW + 60_000,
    "late_at": NOW + 10_000,
    "due_at": NOW,
    "max_tries": 3,
    "frees_key": 0,
    "uncertain": 0,
}
"""Of all statements; what is missing here is the text `x`."""

ROW: Mapping[str, Any] = {
    "tenant": "tenant-a",
    "action_id": "act_1",
    **dict.fromkeys(
        ("capability_id", "connector_id", "principal_id", "principal", "content_hash", "input_hash", "parked"), "x"
    ),
    "read_only": 0,
    "attempt": 1,
    "approval_id": "appr_1",
    "created_at": NOW,
    "claimed_at": NOW,
    "reserved_until": NOW,
    "updated_at": NOW,
    "queued_at": NOW,
    "due_at": NOW,
    "late_at": NOW + 1,
    "frees_key": 1,
    "lease_number": 1,
}
"""An action on which no guard closes but the one of those who waited too long: only its state decides."""

OPENS: Mapping[Guard, Mapping[str, Any]] = {"late": {"late_at": NOW}}
"""How a row differs that a guard lets pass which keeps `ROW` from moving."""

BREAKS: Mapping[Guard, Mapping[str, Any]] = {
    "attempt": {"attempt": 2},
    "lease": {"lease_number": 2},
    "unsent": {"intent_at": NOW},
    "queued": {"queued_at": None},
    "free": {"frees_key": 0},
    "approval": {"approval_id": "appr_2"},
    "due": {"due_at": NOW + 1},
    "timely": {"late_at": NOW},
    "late": {"late_at": NOW + 1},
}
"""How a row differs that one guard keeps from moving."""

WALK = list({(move.statement, move.target): move for move in MOVES}.values())
GUARDED = [(move, guard) for move in MOVES for guard in sorted(move.guards)]


def named(value: object) -> str | None:
    return f"{value.statement}-{value.target}" if isinstance(value, Move) else None


def open_to(move: Move) -> dict[str, Any]:
    """Return an action that every guard of a move lets pass."""
    row = dict(ROW)
    for guard in move.guards:
        row |= OPENS.get(guard, {})
    return row


def try_move(connection: Connection, move: Move, row: Mapping[str, Any] | None) -> tuple[list[Any], list[Any]]:
    """Return the table before and after the statement of a move, on one row or on none."""
    connection.execute("DELETE FROM actions")
    if row is not None:
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        connection.execute(f"INSERT INTO actions ({columns}) VALUES ({values})", row)  # noqa: S608 - names of our own
    before = connection.execute("SELECT * FROM actions")
    sql = QUERIES[move.statement]
    params = {name: PARAMS.get(name, "x") for name in re.findall(r":(\w+)", sql)} | {"state": move.target}
    connection.execute(sql, params)
    return before, connection.execute("SELECT * FROM actions")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "runtime.sqlite3"
    async with Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
        yield database


@pytest.mark.requirement("runtime:lifecycle:one-table")
def test_every_statement_that_writes_a_state_is_in_the_table() -> None:
    writing = {
        name
        for name, sql in QUERIES.items()
        if re.search(r"INSERT INTO actions\b", sql)
        or re.search(r"UPDATE actions\b(?:(?!\bWHERE\b)[\s\S])*\bstate = ", sql)
    }
    assert {move.statement for move in MOVES} == writing
    assert {move.statement for move in MOVES if move.sources & TERMINAL} == {"claim_next_attempt"}


@pytest.mark.requirement("runtime:lifecycle:one-table")
def test_the_reference_page_shows_the_table() -> None:
    page = Path(__file__).parents[2] / "docs/reference/action-lifecycle.md"
    shown = re.findall(r"^\| (.+) \| `(\w+)` \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == [
        (", ".join(f"`{state}`" for state in sorted(move.sources)) or "(none)", move.target, move.cause)
        for move in MOVES
    ]


@pytest.mark.requirement("runtime:lifecycle:one-table")
@pytest.mark.parametrize("move", WALK, ids=named)
async def test_a_statement_moves_from_the_states_of_the_table_and_from_no_other(database: Database, move: Move) -> None:
    moved: set[State | None] = set()
    for state in (None, *STATES):
        row = None if state is None else {**open_to(move), "state": state}
        before, after = await database.write(partial(try_move, move=move, row=row))
        if after != before:
            assert [found["state"] for found in after] == [move.target]
            moved.add(state)
    assert moved == (move.sources or {None})


@pytest.mark.requirement("runtime:lifecycle:one-table")
@pytest.mark.parametrize(("move", "guard"), GUARDED, ids=named)
async def test_a_guard_that_closes_changes_nothing(database: Database, move: Move, guard: Guard) -> None:
    for state in move.sources:
        row = {**open_to(move), "state": state, **BREAKS[guard]}
        before, after = await database.write(partial(try_move, move=move, row=row))
        assert after == before
