"""Pages and counts of sessions. Plain functions of one transaction.

Last activity, preview and counters stand on the row, so that a page is one walk along an index; the texts of prompts,
which many rows share, are one more query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.database import Connection, Listed
from aip_hermes.database.queries import Query
from aip_hermes.embedded.session_db.columns import SESSION_COLUMNS, scrubbed
from aip_hermes.embedded.session_db.ending import RESET_REASONS
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["Filter", "counts", "named", "page", "page_query", "rich_row", "unread"]

_ANY: Final = 2**62
_PROJECTED: Final = (
    "id",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "title",
    "model",
    "system_prompt_hash",
    "cwd",
    "git_branch",
    "git_repo_root",
    "preview",
    "last_active",
)
_PUNCTUATION: Final = re.compile(r"[\W_]+")
_KEYS: Final = (*SESSION_COLUMNS, "preview", "last_active")
_ID: Final = SESSION_COLUMNS.index("id")
_TIP_ID: Final = len(_KEYS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Which rows are meant; None and the empty text ask for nothing. `ids`: these rows only."""

    source: str | None = None
    sources: Sequence[str] | None = None
    exclude_sources: Sequence[str] | None = None
    cwd_prefix: str | None = None
    min_message_count: int = 0
    include_archived: bool = False
    archived_only: bool = False
    include_hidden: bool = False
    pinned_only: bool = False
    session_key: str | None = None
    workspace_key: str | None = None
    ids: Sequence[str] | None = None

    def parameters(self) -> dict[str, Any]:
        """Return what the named queries bind."""
        sources = None if self.sources is None else list(self.sources)
        if self.source is not None:
            sources = [self.source] if sources is None or self.source in sources else []
        cwd = self.cwd_prefix or ""
        return {
            "any_source": int(sources is None or (not sources and self.source is None)),
            "sources": _listed_texts(sources),
            "no_exclusions": int(not self.exclude_sources),
            "exclude_sources": _listed_texts(self.exclude_sources),
            "any_hidden": int(self.include_hidden),
            "any_archived": int(self.include_archived and not self.archived_only),
            "archived": int(self.archived_only),
            "any_pinned": int(not self.pinned_only),
            "any_id": int(self.ids is None),
            "ids": _listed_texts(self.ids),
            "any_key": int(self.session_key is None),
            "session_key": scrubbed(self.session_key or ""),
            "any_cwd": int(not cwd),
            "cwd": scrubbed(cwd.rstrip("/\\") or cwd),
            "any_workspace": int(not self.workspace_key),
            "workspace": scrubbed(self.workspace_key or ""),
            "min_message_count": self.min_message_count,
            "reset_reasons": _listed_texts(RESET_REASONS),
        }


def page_query(*, roots: bool, by_activity: bool) -> Query:
    """Return the query behind a page."""
    return QUERIES[f"list_{'roots' if roots else 'rows'}_by_{'activity' if by_activity else 'start'}"]


def page(
    connection: Connection,
    wanted: Filter,
    *,
    limit: int = _ANY,
    offset: int = 0,
    roots: bool = True,
    project: bool = True,
    by_activity: bool = False,
    prompts: bool = True,
) -> list[dict[str, Any]]:
    """Return session dictionaries with `preview`, `last_active` and `unread`.

    roots: one entry per conversation instead of every row. project: a compressed root is shown as its tip, with
    `_lineage_root_id`. prompts: with the texts of system prompts, else without that key; the hash stays and
    tells whether there is one.
    """
    if limit <= 0:
        return []
    parameters = wanted.parameters() | {"limit": limit, "offset": max(0, offset), "project": int(project)}
    records = connection.tuples(page_query(roots=roots, by_activity=by_activity), parameters)
    tips = _tips(connection, records)
    found = [_listed(record, tips.get(record[_TIP_ID])) for record in records]
    if prompts:
        _add_prompts(connection, found)
    else:
        for row in found:
            del row["system_prompt"]
    return found


def rich_row(connection: Connection, session_id: str, *, prompts: bool) -> dict[str, Any] | None:
    """Return one entry of a listing for a row as it is, or None."""
    wanted = Filter(ids=[scrubbed(session_id)], include_archived=True, include_hidden=True)
    found = page(connection, wanted, limit=1, roots=False, project=False, prompts=prompts)
    return found[0] if found else None


def counts(connection: Connection, wanted: Filter, *, listable_only: bool) -> dict[str, int]:
    """Return how many rows each source has."""
    query = QUERIES["count_listable_rows" if listable_only else "count_rows"]
    rows = connection.execute(query, wanted.parameters())
    return {row["source"]: int(row["sessions"]) for row in rows}


def named(
    connection: Connection, *, id_query: str | None, search_query: str | None, roots: bool = True
) -> list[str] | None:
    """Return the rows whose name fits, or with roots the first segments of their chains; None where nothing is asked.

    id_query: part of an id. search_query: part of an id or a title, with or without its punctuation. Letter case does
    not matter.
    """
    if not id_query and not search_query:
        return None
    id_part, text = (id_query or "").casefold(), (search_query or "").casefold()
    squeezed = _PUNCTUATION.sub("", text)

    def fits(name: str) -> bool:
        return text in name or bool(squeezed and squeezed in _PUNCTUATION.sub("", name))

    found = [
        session_id
        for session_id, title in connection.tuples(QUERIES["names_of_sessions"])
        if (not id_part or id_part in session_id.casefold())
        and (not text or fits(session_id.casefold()) or fits((title or "").casefold()))
    ]
    if not roots:
        return found
    tops = connection.execute(QUERIES["roots_of"], {"ids": _listed_texts(found)})
    return sorted({row["top"] for row in tops})


def unread(row: Mapping[str, Any]) -> bool:
    """Tell whether something happened since the row was read; a row that nobody ever marked is not unread."""
    last_active = row.get("last_active") or row["started_at"]
    return row["last_read_at"] is not None and row["last_read_at"] < last_active


def _listed(record: tuple[Any, ...], tip: Mapping[str, Any] | None) -> dict[str, Any]:
    row = dict(zip(_KEYS, record, strict=False))
    if tip is not None:
        row |= {name: tip[name] for name in _PROJECTED}
        row["_lineage_root_id"] = record[_ID]
    row["unread"] = unread(row)
    return row


def _tips(connection: Connection, records: Sequence[tuple[Any, ...]]) -> dict[str, Mapping[str, Any]]:
    ids = sorted({record[_TIP_ID] for record in records if record[_TIP_ID] not in (None, record[_ID])})
    if not ids:
        return {}
    found = connection.tuples(QUERIES["fetch_listed"], {"ids": _listed_texts(ids)})
    return {row[_ID]: dict(zip(_KEYS, row, strict=True)) for row in found}


def _add_prompts(connection: Connection, found: Sequence[dict[str, Any]]) -> None:
    hashes = sorted({row["system_prompt_hash"] for row in found if row["system_prompt_hash"]})
    if not hashes:
        return
    texts = {
        r["hash"]: r["text"] for r in connection.execute(QUERIES["fetch_prompts"], {"hashes": _listed_texts(hashes)})
    }
    for row in found:
        row["system_prompt"] = texts.get(row["system_prompt_hash"])


def _listed_texts(values: Sequence[str] | None) -> Listed:
    return Listed(scrubbed(value) for value in values or ())
