"""Searches as functions of one transaction: which rows, in which order, with what around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.database import Connection, Listed
from aip_hermes.database.queries import Query
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.search.in_rows import match_query, patterns, weighed, words_condition
from aip_hermes.embedded.session_db.search.index import state_of
from aip_hermes.embedded.session_db.search.language import Node, has_cjk, loosened, parse, terms
from aip_hermes.embedded.session_db.search.matching import Condition, match_expression
from aip_hermes.embedded.session_db.search.snippets import excerpt, marked_snippet
from aip_hermes.embedded.session_db.search.words import fits, folded_words

__all__ = ["FIELDS", "RANKED", "Search", "find", "find_if_complete", "projection"]

FIELDS: Final = (
    "id", "session_id", "role", "snippet", "timestamp", "tool_name", "source", "model", "session_started", "context",
)  # fmt: skip
"""Members of a hit."""

RANKED: Final = 1_000
"""Matches that are weighed against each other; weighing costs a microsecond each, and a word may be in every row."""

_CONTEXT_CHARS: Final = 200
_SUBSTRING_CHARS: Final = 3
_WAITING: Final = 2_000
"""Rows behind the index that are looked through one by one; more are a reason to do without it."""
_SECOND_LOOK_TERMS: Final = 32
"""Of a longer query no second look is taken: each term of it costs a look at each row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """query: as typed. sources, excluded, roles: None is no filter. sort: `newest`, `oldest`, else by relevance."""

    query: str
    sources: tuple[str, ...] | None
    excluded: tuple[str, ...] | None
    roles: tuple[str, ...] | None
    limit: int
    offset: int
    sort: str | None
    include_inactive: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be found, whatever is stored."""
        return self.limit <= 0 or self.sources == () or not self.query.strip()

    @property
    def parameters(self) -> dict[str, Any]:
        """The filters as every query takes them."""
        lists = {"sources": self.sources, "excluded": self.excluded, "roles": self.roles}
        return {
            "include_inactive": int(self.include_inactive),
            **{name: None if chosen is None else Listed(chosen) for name, chosen in lists.items()},
        }


def projection(fields: Iterable[str] | None) -> tuple[str, ...]:
    """Return the members to keep. Raises TypeError for a text, ValueError for a name that no hit has."""
    if fields is None:
        return FIELDS
    if isinstance(fields, str | bytes):
        raise TypeError("fields is a list of names, not a text")
    chosen = tuple(fields)
    unknown = sorted({str(name) for name in chosen if name not in FIELDS})
    if unknown:
        raise ValueError(f"no such fields: {', '.join(unknown)}; a hit has {', '.join(FIELDS)}")
    return chosen


def find_if_complete(connection: Connection, search: Search) -> list[dict[str, Any]] | None:
    """Return hits; None where rows wait to be indexed or there is no index."""
    if search.is_empty:
        return []
    state = state_of(connection)
    return None if state.indexed_through is None or state.waiting else find(connection, search)


def find(connection: Connection, search: Search, *, use_index: bool = True) -> list[dict[str, Any]]:
    """Return hits. use_index: else, as without an index, the texts themselves are searched for substrings.

    Scripts without spaces are searched as substrings; so is what no index finds, if it is long enough to mean a part of
    a word. Matches that are not in the index because nothing can be written now stand in front.
    """
    tree = None if search.is_empty else parse(search.query)
    if tree is None:
        return []
    state = state_of(connection) if use_index else None
    if state is None or state.indexed_through is None or state.waiting > _WAITING:
        return _scanned(connection, search, tree)
    if has_cjk(tree) or not _has_words(connection, tree):
        return _scanned(connection, search, tree)
    found = _indexed(connection, search, tree, waiting_after=state.indexed_through if state.waiting else None)
    if not found and _may_be_part_of_word(tree) and not _any(connection, search, tree):
        return _scanned(connection, search, tree)
    return _hits(connection, search, found, tree, marked=True)


def _scanned(connection: Connection, search: Search, tree: Node) -> list[dict[str, Any]]:
    found = _scan(connection, search, tree, limit=search.limit, offset=search.offset)
    loose = loosened(tree) if has_cjk(tree) and _is_short(tree) else tree
    if not found and loose != tree and not (search.offset and _scan(connection, search, tree, limit=1, offset=0)):
        # Spaces mean little to who writes without them: any of the words, then.
        tree = loose
        found = _scan(connection, search, tree, limit=search.limit, offset=search.offset)
    return _hits(connection, search, found, tree, marked=False)


def _indexed(connection: Connection, search: Search, tree: Node, *, waiting_after: int | None) -> list[int]:
    if waiting_after is None:
        return _match(connection, search, tree, limit=search.limit, offset=search.offset)
    upto = search.limit + search.offset
    waiting = _waiting(connection, search, tree, after=waiting_after)
    indexed = _match(connection, search, tree, limit=upto, offset=0)
    found = [*indexed, *waiting] if search.sort == "oldest" else [*waiting, *indexed]
    return found[search.offset : upto]


def _match(connection: Connection, search: Search, tree: Node, *, limit: int, offset: int) -> list[int]:
    in_rows = words_condition(tree) if connection.engine == "postgres" else None
    expression = match_expression(tree) if in_rows is None else match_query(tree)
    parameters = {**search.parameters, "match": expression, **(in_rows.parameters if in_rows else {})}

    def matches(name: str, page: Mapping[str, int]) -> list[dict[str, Any]]:
        query = QUERIES[name] if in_rows is None else _with_condition(QUERIES[name], in_rows.sql)
        return connection.execute(query, {**parameters, **page})

    if search.sort in ("newest", "oldest"):
        return [row["id"] for row in matches(f"search_{search.sort}", {"limit": limit, "offset": offset})]
    found: list[int] = []
    while limit > 0:
        block, within = divmod(offset, RANKED)
        page = {"block": RANKED, "block_start": block * RANKED, "limit": min(limit, RANKED - within), "offset": within}
        rows = matches("search_ranked", page)
        # One engine weighs by itself and gives the page, the other gives the block.
        best = (
            [row["id"] for row in rows]
            if in_rows is None
            else weighed(connection, rows, tree)[within : within + page["limit"]]
        )
        found += best
        if len(best) < page["limit"]:
            break
        limit, offset = limit - len(best), offset + len(best)
    return found


def _scan(connection: Connection, search: Search, tree: Node, *, limit: int, offset: int) -> list[int]:
    contains = QUERIES["text_contains"]
    there = connection.engine == "postgres"
    condition = (
        Condition(tree, contains=contains.postgres or contains, forms=patterns)
        if there
        else Condition(tree, contains=contains)
    )
    name = "scan_oldest" if search.sort == "oldest" else "scan_newest"
    query = _with_condition(QUERIES[name], condition.sql)
    page = {"limit": limit, "offset": offset}
    return [row["id"] for row in connection.execute(query, {**search.parameters, **condition.parameters, **page})]


def _waiting(connection: Connection, search: Search, tree: Node, *, after: int) -> list[int]:
    """Return rows behind the index by their words: the index would find the same."""
    name = "waiting_oldest" if search.sort == "oldest" else "waiting_newest"
    rows = connection.execute(QUERIES[name], {**search.parameters, "after": after})
    texts = ("content", "tool_name", "tool_calls")
    return [row["id"] for row in rows if fits(tree, [folded_words(_text(row[text]) or "") for text in texts])]


def _has_words(connection: Connection, tree: Node) -> bool:
    """Whether the index knows anything of what is asked for."""
    if connection.engine == "postgres":
        return match_query(tree) is not None
    return not all(term.wordless for term in terms(tree))


def _any(connection: Connection, search: Search, tree: Node) -> bool:
    """Whether an earlier page has hits, so that an empty one is the end of them."""
    return search.offset > 0 and bool(_match(connection, search, tree, limit=1, offset=0))


def _may_be_part_of_word(tree: Node) -> bool:
    """Whether every term is long enough; of letters beyond ASCII the index may know none, so they may be short."""
    texts = [term.text for term in terms(tree)]
    return _is_short(tree) and (
        all(len(text) >= _SUBSTRING_CHARS for text in texts) or not all(text.isascii() for text in texts)
    )


def _is_short(tree: Node) -> bool:
    return sum(1 for _ in terms(tree)) <= _SECOND_LOOK_TERMS


def _with_condition(query: Query, condition: str) -> Query:
    """Return a query with a condition that is written for the engine at hand."""
    other = (query.postgres or query).replace("{condition}", condition)
    return Query(query.replace("{condition}", condition), postgres=other)


def _hits(
    connection: Connection, search: Search, ids: Sequence[int], tree: Node, *, marked: bool
) -> list[dict[str, Any]]:
    if not ids:
        return []
    wanted = list(terms(tree))
    show = marked_snippet if marked else excerpt
    parameters = {"ids": Listed(ids), "include_inactive": int(search.include_inactive)}
    hits = []
    for row in connection.execute(QUERIES["fetch_hits"], parameters):
        content = _text(row["content"])
        hits.append(
            {name: row[name] for name in ("id", "session_id", "role")}
            | {"snippet": show((content, row["tool_name"], _text(row["tool_calls"])), wanted)}
            | {name: row[name] for name in ("timestamp", "tool_name", "source", "model", "session_started")}
            | {"context": _context(row, content)}
        )
    return hits


def _context(row: Mapping[str, Any], content: str | None) -> list[dict[str, Any]]:
    neighbours = (
        (row["before_role"], _text(row["before_content"])),
        (row["role"], content),
        (row["after_role"], _text(row["after_content"])),
    )
    return [{"role": role, "content": (text or "")[:_CONTEXT_CHARS]} for role, text in neighbours if role is not None]


def _text(stored: bytes | str | None) -> str | None:
    """Return a text; one that came as bytes may end inside a letter."""
    return scrubbed(stored.decode("utf-8", "ignore")) if isinstance(stored, bytes) else stored
