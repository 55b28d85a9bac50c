"""The session store's schema and queries as PostgreSQL takes them."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from aip_hermes.database import migrations
from aip_hermes.database.postgres.ddl import translated_ddl
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import KIND
from tests.support.postgres import untyped
from tests.support.session_stores import chain

OF_THE_FILE_ALONE: Final = frozenset(
    {
        "check_search_index",
        "create_append_trigger",
        "create_delete_trigger",
        "create_rewrite_trigger",
        "create_search_index",
        "create_unwrite_trigger",
        "note_indexed",
        "unindex_old",
        "waiting",
        "waiting_newest",
        "waiting_oldest",
    }
)
"""The index of words that a file has beside its rows; on PostgreSQL the words are in the rows."""

PARTS: Final = frozenset(
    {
        "given_id",
        "is_empty",
        "join_in_order",
        "listable",
        "listed_columns",
        "listed_tip",
        "listing_filter",
        "lowered",
        "matched",
        "message_columns",
        "next_segment",
        "scanned",
        "search_filter",
        "text_contains",
        "texts_change",
        "told_more",
    }
)
"""What stands inside other queries."""

COMMANDS: Final = frozenset({"make_doomed", "optimize_search_index"})
"""What a server prepares no plan for."""


@pytest.mark.requirement("sessions:postgres:written-once")
def test_the_schema_and_every_query_of_the_session_store_are_taken_as_they_are(postgres_dsn: str) -> None:
    refused: dict[str, str] = {}
    with psycopg.connect(postgres_dsn, autocommit=True) as raw:
        for migration in migrations.load(KIND.migrations, dialect="postgres", translate=translated_ddl):
            raw.execute(migration.sql.encode())
        raw.execute((QUERIES["make_doomed"].postgres or QUERIES["make_doomed"]).encode())
        for name, query in QUERIES.items():
            if name in OF_THE_FILE_ALONE | PARTS | COMMANDS:
                continue
            text = (query.postgres or query).replace("{condition}", "TRUE")
            try:
                raw.execute(f"PREPARE {name} AS {untyped(text)}".encode())
            except psycopg.Error as error:
                refused[name] = str(error)
    assert not refused, "\n".join(f"{k}: {v}" for k, v in refused.items())


@pytest.mark.requirement("sessions:postgres:written-once")
async def test_a_long_chain_of_compressions_is_one_entry_of_a_listing_there_too(postgres_dsn: str) -> None:
    ids = [f"s{number:03}" for number in range(103)]
    async with SessionDB(postgres_dsn) as db:
        await chain(db, *ids)
        listed = await db.list_sessions_rich(order_by_last_active=True)
    assert [(row["id"], row["_lineage_root_id"]) for row in listed] == [(ids[-1], ids[0])]
