"""Reading members of an answer: what is missing or of another kind is named, never taken for empty.

Source: field report F101.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from aip_hermes.client.failures import Undecodable
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import Identity, IdentityError

__all__ = ["a_count", "a_list", "a_text", "an_identity", "an_object", "text_or_none"]

_I = TypeVar("_I", bound=Identity)


def an_object(raw: Mapping[str, Any], name: str, what: str) -> JsonObject:
    """Return the object `name`. Raises: Undecodable."""
    value = raw.get(name)
    if not isinstance(value, dict):
        raise Undecodable(f"AIP response: {what} has no object `{name}`")
    return value


def a_list(raw: Mapping[str, Any], name: str, what: str) -> Sequence[Any]:
    """Return the list `name`. Raises: Undecodable."""
    value = raw.get(name)
    if not isinstance(value, list):
        raise Undecodable(f"AIP response: {what} has no list `{name}`")
    return value


def a_text(raw: Mapping[str, Any], name: str, what: str) -> str:
    """Return the text `name`, not empty. Raises: Undecodable."""
    value = raw.get(name)
    if not isinstance(value, str) or not value:
        raise Undecodable(f"AIP response: {what} has no text `{name}`")
    return value


def text_or_none(value: Any) -> str | None:
    """Return a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def a_count(value: Any) -> int | None:
    """Return an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def an_identity(kind: type[_I], value: Any) -> _I | None:
    """Return a text as an identity of that kind, else None."""
    try:
        return kind(value) if isinstance(value, str) else None
    except IdentityError:
        return None
