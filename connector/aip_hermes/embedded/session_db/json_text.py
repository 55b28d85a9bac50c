"""JSON as it is stored: strict, and no deeper than any reader can follow."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MAX_LEVELS", "json_text", "json_value", "shown"]

MAX_LEVELS: Final = 100
"""Lists and objects inside each other. A reader follows some hundred, fewer the deeper it is called itself."""

_MAX_BITS: Final = 10_000
"""Of a whole number; readers refuse one of more than 4,300 digits."""


def json_text(value: object) -> str:
    """Return JSON for anything, letters as they are: half the size of escapes.

    What JSON can't hold (NaN, an object of a class, a circle) and what is nested deeper than 100 levels stands in it as
    a text.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_plain(value, MAX_LEVELS, frozenset()), ensure_ascii=False)
    if text.count("[") + text.count("{") <= MAX_LEVELS or _is_flat(value, MAX_LEVELS):
        return text
    return json.dumps(_plain(value, MAX_LEVELS, frozenset()), ensure_ascii=False)


def json_value(text: str, default: object = None) -> Any:
    """Return what a JSON text says; `default` where it is none, or one that nobody can follow."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def shown(value: object) -> str:
    """Return `str(value)`, or what it is an object of where it can't say more."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _is_flat(value: object, levels: int) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    if inside and not levels:
        return False
    return all(_is_flat(one, levels - 1) for one in inside)


def _plain(value: object, levels: int, above: frozenset[int]) -> object:
    """Return the same of what JSON knows. above: the identities of what it stands in."""
    if isinstance(value, list | tuple | Mapping):
        if not levels or id(value) in above:
            return shown(value)
        here = above | {id(value)}
        if isinstance(value, Mapping):
            return {_key(key): _plain(one, levels - 1, here) for key, one in value.items()}
        return [_plain(one, levels - 1, here) for one in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else hex(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return shown(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else shown(key)
