"""Named queries: SQL stands in `.sql` files, Python calls it by name.

A query begins with a line `-- name: fetch_action`, followed by one comment line that says what it answers. Where
PostgreSQL needs other words, `events.postgres.sql` beside `events.sql` says them under the same name. What several
queries have in common is an entry of its own, too: `/*tip*/` stands for the text of the entry `tip`, in either dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType

__all__ = ["Queries", "Query"]

_HEAD = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)[ \t]*\n-- (?P<sentence>[^\n]+)\n", re.MULTILINE)
_PART = re.compile(r"/\*(?P<name>[a-z][a-z0-9_]*)\*/")
_DIALECT = ".postgres.sql"


class Query(str):
    """The text of a query as SQLite takes it. postgres: as PostgreSQL does, None where it is the same."""

    __slots__ = ("postgres",)

    postgres: str | None

    def __new__(cls, text: str, *, postgres: str | None = None) -> Query:
        query = super().__new__(cls, text)
        query.postgres = postgres
        return query


class Queries:
    """Reader of query files."""

    @staticmethod
    def load(*, package: str, names: Sequence[str]) -> Mapping[str, Query]:
        """Return name → SQL of the files `names` in `package`.

        Raises ValueError for a query without a sentence, without SQL, or with a name used twice, for one that only the
        other engine would have, and for a part that is no entry or contains itself.
        """
        queries: dict[str, Query] = {}
        for file in names:
            own = _parsed(package, file)
            dialect = file.removesuffix(".sql") + _DIALECT
            other = _parsed(package, dialect) if files(package).joinpath(dialect).is_file() else {}
            if twice := own.keys() & queries.keys():
                raise ValueError(f"{file}: query {min(twice)} is written twice")
            if alone := other.keys() - own.keys():
                raise ValueError(f"{dialect}: query {min(alone)} is not in {file}")
            queries |= {name: Query(sql, postgres=other.get(name)) for name, sql in own.items()}
        return MappingProxyType({name: _composed(name, queries) for name in queries})


def _composed(name: str, queries: Mapping[str, Query]) -> Query:
    own = _filled(name, queries, lambda query: query, ())
    other = _filled(name, queries, lambda query: query.postgres or query, ())
    return Query(own, postgres=None if other == own else other)


def _filled(name: str, queries: Mapping[str, Query], spoken: Callable[[Query], str], around: tuple[str, ...]) -> str:
    """Return a query in one dialect with its parts in their places. around: the queries that it is a part of."""
    if name not in queries or name in around:
        raise ValueError(f"query {around[-1]}: /*{name}*/ {'contains itself' if name in around else 'is no entry'}")
    within = (*around, name)
    return _PART.sub(lambda part: _filled(part["name"], queries, spoken, within), spoken(queries[name]))


def _parsed(package: str, file: str) -> dict[str, str]:
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    heads = list(_HEAD.finditer(text))
    if text.count("-- name:") != len(heads):
        raise ValueError(f"{file}: each `-- name:` line needs one comment line with a sentence below it")
    queries: dict[str, str] = {}
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        sql = text[head.end() : following.start() if following else len(text)].strip().rstrip(";")
        if not sql or head["name"] in queries:
            raise ValueError(f"{file}: query {head['name']} is empty or written twice")
        queries[head["name"]] = sql
    return queries
