"""Named queries of the session store."""

from __future__ import annotations

from typing import Final

from aip_hermes.database import Queries

__all__ = ["QUERIES"]

QUERIES: Final = Queries.load(
    package="aip_hermes.embedded.session_db.queries",
    names=(
        "sessions.sql",
        "messages.sql",
        "rewriting.sql",
        "settings.sql",
        "lineage.sql",
        "listing.sql",
        "counting.sql",
        "jobs.sql",
        "responses.sql",
        "removal.sql",
        "removals.sql",
        "pruning.sql",
        "usage.sql",
        "portability.sql",
        "search.sql",
        "leases.sql",
        "compression_notes.sql",
    ),
)
