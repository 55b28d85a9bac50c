"""What differs between the two engines below the level of a query: parameters, flags, sums, and NUL in a text.

PostgreSQL has no NUL in a text. It is stored as a pair that begins with a private-use character, and that character
itself as another pair, so that every text comes back as it was and equal texts stay equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from aip_hermes.database.connection import Listed

__all__ = ["in_rows", "parameters", "translated_query"]

_ESCAPE: Final = "\ue000"
_NUL: Final = _ESCAPE + "0"
_ITSELF: Final = _ESCAPE + "1"
_STORED: Final = re.compile(_ESCAPE + "([01])")
_GIVEN: Final = re.compile(f"[\0{_ESCAPE}]")
_TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*'          # a literal
      | "(?:[^"]|"")*"          # a quoted name
      | --[^\n]*                # a comment
      | ::                      # a cast
      | :(?P<name>[a-z_][a-z0-9_]*)
      | %""",
    re.VERBOSE | re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def translated_query(query: str) -> str:
    """Return `query` with its `:name` parameters in the driver's form, literals, comments and casts left alone."""

    def replaced(token: re.Match[str]) -> str:
        return f"%({token['name']})s" if token["name"] else token[0].replace("%", "%%")

    return _TOKEN.sub(replaced, query)


def parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that the engine takes: flags as 0 and 1, texts without NUL, lists as arrays."""
    return {name: _given(value) for name, value in given.items()}


def in_rows(value: object) -> object:
    """Return a value of a row as the other engine gives it: flags as 0 and 1, whole sums as int, texts as stored."""
    match value:
        case bool():
            return int(value)
        case Decimal():
            whole = int(value)
            return whole if whole == value else float(value)
        case str() if _ESCAPE in value:
            return _STORED.sub(lambda pair: "\0" if pair[1] == "0" else _ESCAPE, value)
        case memoryview():
            return bytes(value)
        case _:
            return value


def _given(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Listed):
        return [_given(one) for one in value.values]
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return _GIVEN.sub(lambda found: _NUL if found[0] == "\0" else _ITSELF, value)
    return value
