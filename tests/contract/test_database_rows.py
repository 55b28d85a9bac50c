"""What an operation gets from its transaction, the same from either engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aip_hermes.database import Connection, Store, StoreKind, open_store, store_place

KIND = StoreKind(migrations="tests.support.store_migrations", application_id=0x41495054, schema="shop")
INSERT = "INSERT INTO items (name) VALUES (:name)"


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    place = str(tmp_path / "s.db") if request.param == "sqlite" else request.getfixturevalue("postgres_dsn")
    async with open_store(store_place(place), KIND) as opened:
        yield opened


@pytest.mark.requirement("database:connection:rows")
async def test_an_insert_tells_its_id_and_a_select_its_columns_in_order(store: Store) -> None:
    def insert(connection: Connection) -> list[int]:
        return [connection.insert(INSERT, {"name": name, "unused": None}) for name in ("a", "b\0c", "d")]

    ids = await store.write(insert)
    assert ids == sorted(set(ids))
    rows = await store.read(lambda c: c.tuples("SELECT name, id FROM items ORDER BY id"))
    assert rows == list(zip(("a", "b\0c", "d"), ids, strict=True))
    found = await store.read(lambda c: c.execute("SELECT id, name FROM items WHERE id = :id", {"id": ids[1]}))
    assert found == [{"id": ids[1], "name": "b\0c"}]
    assert await store.read(lambda c: c.execute("SELECT id FROM items WHERE id = 0")) == []


@pytest.mark.requirement("database:connection:rows")
async def test_a_change_tells_how_many_rows_it_met(store: Store) -> None:
    def change(connection: Connection) -> list[int]:
        for name in ("a", "b"):
            connection.insert(INSERT, {"name": name})
        met = []
        for query in ("UPDATE items SET name = name || 'x'", "DELETE FROM items WHERE name = 'a'"):
            connection.execute(query)
            met.append(connection.changes)
        return met

    assert await store.write(change) == [2, 0]
