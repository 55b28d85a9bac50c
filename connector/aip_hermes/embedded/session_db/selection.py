"""Which rows a prune or an archive means: bounds and texts, checked before the store is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["Selection", "selected"]

_DAY_S: Final = 86_400.0
_ENDLESS: Final = 1e300
_EVERY_COUNT: Final = 2**63 - 1
_EVERYTHING: Final = 2**62
_MAX_LIKE_CHARS: Final = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What a prune, a list of candidates or an archive means; a member that is None narrows nothing.

    Texts are literal: `%` and `_` mean themselves. title_like, model_like, branch_like: anywhere in the text, upper and
    lower case of a–z alike. cwd_prefix: that folder or one below. Times are Unix seconds, `after` is inclusive and
    `before` exclusive; other bounds include both ends. tokens: input and output. cost: US dollars, the actual where it
    is known, else the estimate.
    """

    source: str | None = None
    last_active_before: float | None = None
    last_active_after: float | None = None
    started_before: float | None = None
    started_after: float | None = None
    title_like: str | None = None
    end_reason: str | None = None
    cwd_prefix: str | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    archived: bool | None = None
    model_like: str | None = None
    provider: str | None = None
    user_id: str | None = None
    chat_id: str | None = None
    chat_type: str | None = None
    branch_like: str | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    min_cost: float | None = None
    max_cost: float | None = None
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None

    def __post_init__(self) -> None:
        for name, value in _members(self).items():
            if value is not None:
                _check(name, value)

    @classmethod
    def older(cls, days: float | None, *, now: float, source: str | None, **filters: Any) -> Selection:
        """Return the selection of rows inactive for `days` and more, None for any age, that the filters mean.

        Raises ValueError for a negative age, TypeError for an unknown filter or a value of another kind.
        """
        if days is not None and not days >= 0:
            raise ValueError("an age in days is zero or more")
        chosen = cls(source=source, **filters)
        if days is None:
            return chosen
        # A row that became inactive at this very moment is zero days old.
        latest = math.nextafter(now - days * _DAY_S, math.inf)
        given = chosen.last_active_before
        return cls(**{**_members(chosen), "last_active_before": latest if given is None else min(latest, given)})

    def parameters(self, *, ended: bool, limit: int | None) -> dict[str, Any]:
        """Return the parameters of the query."""
        values = _members(self)
        for name, value in values.items():
            if name.endswith("_like"):
                values[name] = None if value is None else f"%{_literal(scrubbed(value))}%"
            elif isinstance(value, str):
                values[name] = scrubbed(value)
        for name in ("last_active", "started"):
            values[f"{name}_before"] = float(_or(values[f"{name}_before"], _ENDLESS))
            values[f"{name}_after"] = float(_or(values[f"{name}_after"], -_ENDLESS))
        for name, end in (
            ("messages", _EVERY_COUNT),
            ("tool_calls", _EVERY_COUNT),
            ("tokens", _EVERY_COUNT),
            ("cost", _ENDLESS),
        ):
            # No row has more than an engine can count.
            values[f"min_{name}"] = max(-end, min(end, _or(values[f"min_{name}"], -end)))
            values[f"max_{name}"] = max(-end, min(end, _or(values[f"max_{name}"], end)))
        values["archived"] = -1 if self.archived is None else int(self.archived)
        if self.cwd_prefix is not None:
            values["cwd_prefix"] = self.cwd_prefix.rstrip("/")
        return values | {"ended": int(ended), "limit": _EVERYTHING if limit is None else limit}


def selected(
    connection: Connection, selection: Selection, *, ended: bool, limit: int | None = None
) -> dict[str, float]:
    """Return id → last activity of the ended or the open rows that a selection means, longest inactive first."""
    found = connection.execute(QUERIES["selected_sessions"], selection.parameters(ended=ended, limit=limit))
    return {row["id"]: row["last_active"] for row in found}


def _members(selection: Selection) -> dict[str, Any]:
    return {field.name: getattr(selection, field.name) for field in fields(selection)}


def _check(name: str, value: object) -> None:
    """Refuse a value of another kind: an engine compares a number with a text, too, and then every row is meant."""
    if name == "archived":
        if value not in (False, True):
            raise TypeError("archived is True, False or None")
    elif name.endswith(("_before", "_after")) or name.startswith(("min_", "max_")):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is a number, times are Unix seconds")
        if math.isnan(value):
            raise ValueError(f"{name} is not a number")
    elif not isinstance(value, str):
        raise TypeError(f"{name} is a text")
    elif name.endswith("_like") and len(value) > _MAX_LIKE_CHARS:
        raise ValueError(f"{name} is longer than {_MAX_LIKE_CHARS} characters")


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value
