"""Named queries: SQL stands in `.sql` files, Python calls it by name.

A query begins with a line `-- name: fetch_action`, followed by one comment line that says what it answers. Where
PostgreSQL needs other words, `events.postgres.sql` beside `events.sql` says them under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType

__all__ = ["Queries", "Query"]

_HEAD = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)[ \t]*\n-- (?P<sentence>[^\n]+)\n", re.MULTILINE)
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

        Raises ValueError for a query without a sentence, without SQL, or with a name used twice, and for one that only
        the other engine would have.
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
        return MappingProxyType(queries)


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
