"""Named queries: SQL stands in `.sql` files, Python calls it by name.

A query begins with a line `-- name: fetch_action`, followed by one comment line that says what it answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType

__all__ = ["Queries"]

_HEAD = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)[ \t]*\n-- (?P<sentence>[^\n]+)\n", re.MULTILINE)


class Queries:
    """Reader of query files."""

    @staticmethod
    def load(*, package: str, names: Sequence[str]) -> Mapping[str, str]:
        """Return name → SQL of the files `names` in `package`.

        Raises ValueError for a query without a sentence, without SQL, or with a name used twice.
        """
        queries: dict[str, str] = {}
        for file in names:
            text = files(package).joinpath(file).read_text(encoding="utf-8")
            heads = list(_HEAD.finditer(text))
            if text.count("-- name:") != len(heads):
                raise ValueError(f"{file}: each `-- name:` line needs one comment line with a sentence below it")
            for head, following in zip(heads, [*heads[1:], None], strict=True):
                sql = text[head.end() : following.start() if following else len(text)].strip().rstrip(";")
                if not sql or head["name"] in queries:
                    raise ValueError(f"{file}: query {head['name']} is empty or written twice")
                queries[head["name"]] = sql
        return MappingProxyType(queries)
