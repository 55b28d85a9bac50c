"""Titles: unique letter by letter, ranked by who gave them, numbered along a lineage. Plain functions of one
transaction."""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.errors import TitleRefused
from aip_hermes.embedded.session_db.lineage import compression_ancestors
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.hermes_api import TITLE_MAX, clean_title, lineage_base, next_lineage_title, title_problem

__all__ = [
    "continued_title",
    "next_title",
    "resolve",
    "sanitized_title",
    "set_automatic",
    "set_source",
    "set_title",
    "title_of",
]

_RANKS: Final = {"derived": 0, "llm": 1, "user": 2}
_USER: Final = "user"


def sanitized_title(title: object) -> str | None:
    """Return the cleaned title. Raises TitleRefused when it is too long."""
    cleaned = clean_title(title)
    if problem := title_problem(cleaned):
        raise TitleRefused(problem)
    return cleaned


def set_title(connection: Connection, session_id: str, title: object, *, source: str = _USER) -> bool:
    """Write a title; an empty one clears. False for an unknown id.

    Raises TitleRefused for one too long or held by another row; a compressed ancestor hands its title over instead.
    """
    session_id = scrubbed(session_id)
    cleaned = sanitized_title(title)
    if not connection.execute(QUERIES["session_exists"], {"id": session_id}):
        return False
    if cleaned is not None:
        for holder in connection.execute(QUERIES["title_holder"], {"title": cleaned, "id": session_id}):
            if holder["id"] not in compression_ancestors(connection, session_id):
                raise TitleRefused(
                    f"Title '{cleaned}' is already in use by session {holder['id']}", holder=holder["id"]
                )
            connection.execute(QUERIES["write_title"], {"id": holder["id"], "title": None, "title_source": None})
    given_by = None if cleaned is None else source
    connection.execute(QUERIES["write_title"], {"id": session_id, "title": cleaned, "title_source": given_by})
    return True


def set_automatic(connection: Connection, session_id: str, title: object, *, source: str, empty_only: bool) -> bool:
    """Write a title that no person gave, over one of lower rank or, with empty_only, over none. False: not written.

    Raises ValueError for another source than derived or llm, TitleRefused as set_title.
    """
    if source not in _RANKS or source == _USER:
        raise ValueError(f"invalid automatic title source: {source!r}; it is 'derived' or 'llm'")
    row = title_of(connection, session_id)
    if row is None or sanitized_title(title) is None:
        return False
    if row["title"] is not None and (empty_only or _rank(row["title_source"]) >= _RANKS[source]):
        return False
    return set_title(connection, session_id, title, source=source)


def set_source(connection: Connection, session_id: str, source: str) -> bool:
    """Change who is said to have given a title; False where there is none. Raises ValueError for an unknown source."""
    if source not in _RANKS:
        raise ValueError(f"invalid title source: {source!r}; it is one of {', '.join(_RANKS)}")
    connection.execute(QUERIES["write_title_source"], {"id": scrubbed(session_id), "title_source": source})
    return connection.changes > 0


def title_of(connection: Connection, session_id: str) -> dict[str, Any] | None:
    """Return `{title, title_source}` of the row, or None."""
    rows = connection.execute(QUERIES["fetch_title"], {"id": scrubbed(session_id)})
    return rows[0] if rows else None


def next_title(connection: Connection, title: str) -> str:
    """Return the next free title of the lineage that `title` belongs to."""
    title = scrubbed(title)
    rows = connection.execute(QUERIES["lineage_rows"], {"base": lineage_base(title)})
    return next_lineage_title(title, [row["title"] for row in rows])


def continued_title(connection: Connection, title: str | None) -> str | None:
    """Return the title of the row that goes on with another's conversation: the next of its lineage, of which as much
    is left out as the number needs. A row without a title goes on without one.
    """
    while title is not None:
        numbered = next_title(connection, title)
        over = len(numbered) - TITLE_MAX
        if over <= 0:
            return numbered
        title = lineage_base(title)[:-over].rstrip()
    return None


def resolve(connection: Connection, title: str) -> str | None:
    """Return the row that goes on under a title: the newest of its numbered ones, else the one that has it exactly."""
    title = scrubbed(title)
    rows = connection.execute(QUERIES["lineage_rows"], {"base": title})
    numbered = [row for row in rows if lineage_base(row["title"]) == title and row["title"] != title]
    if numbered:
        return str(max(numbered, key=lambda row: (row["started_at"], row["id"]))["id"])
    return next((str(row["id"]) for row in rows if row["title"] == title), None)


def _rank(source: str | None) -> int:
    # A title whose giver nobody noted counts as a person's.
    return _RANKS.get(source or _USER, _RANKS[_USER])
