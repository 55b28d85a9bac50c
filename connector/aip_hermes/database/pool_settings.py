"""How many connections a PostgreSQL store may hold, and how they are made: `[database.postgres]`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["NAME", "ConnectSettings", "PoolSettingInvalid", "PoolSettings", "pool_settings"]

NAME: Final = "database.postgres"
_FOR_EVER: Final = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectSettings:
    """connect_timeout: seconds. prepare_threshold: uses of a statement before it is prepared, None: never (for a pooler
    in transaction mode). options: libpq's, such as `-c statement_timeout=60000`.
    """

    connect_timeout: int = 10
    prepare_threshold: int | None = 5
    application_name: str = "aip-hermes"
    options: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolSettings:
    """pool_size: connections that stay open. max_overflow: more under load, -1: without a limit. pool_timeout: seconds
    that an operation waits for a connection. pool_recycle: seconds after which a connection is replaced, -1: never.
    pool_pre_ping: ask a connection whether it lives before it is used.

    A worker holds at most pool_size + max_overflow connections, and one more that listens.
    """

    pool_size: int = 5
    max_overflow: int = 10
    pool_timeout: float = 30.0
    pool_recycle: float = _FOR_EVER
    pool_pre_ping: bool = True
    connect: ConnectSettings = field(default_factory=ConnectSettings)

    @property
    def limit(self) -> int | None:
        """The most connections at once; None: no limit."""
        return None if self.max_overflow < 0 else self.pool_size + self.max_overflow


class PoolSettingInvalid(ValueError):
    """member: the key, dotted from the table on. rule: what it breaks; never a value."""

    def __init__(self, member: str, rule: str) -> None:
        super().__init__(f"{NAME}.{member} {rule}")
        self.member = member
        self.rule = rule


def pool_settings(given: Mapping[str, Any]) -> PoolSettings:
    """Return the settings that a table holds. Raises PoolSettingInvalid, before any connection is made."""
    values = _checked(given, _POOL)
    if values.pop("pool_use_lifo", False):
        rule = "= true cannot be honoured: the pool hands out the connection that rested longest; leave the line out"
        raise PoolSettingInvalid("pool_use_lifo", rule)
    connect = ConnectSettings(**_checked(values.pop("connect_args", {}), _CONNECT, inside="connect_args."))
    found = PoolSettings(**values, connect=connect)
    if found.limit == 0:
        raise PoolSettingInvalid("pool_size", "and max_overflow are both 0, so there would be no connection at all")
    return found


Check = Callable[[object], str | None]


def _whole(least: int) -> Check:
    def check(value: object) -> str | None:
        return None if _is_int(value) and value >= least else f"a whole number, {least} or more"  # type: ignore[operator]

    return check


def _seconds(least: float, *, never: bool = False) -> Check:
    def check(value: object) -> str | None:
        right = _is_number(value) and (value >= least or (never and value == _FOR_EVER))  # type: ignore[operator]
        return None if right else f"a number of seconds, {least:g} or more{', or -1 for never' if never else ''}"

    return check


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and "\0" not in value else "a text"


def _table(value: object) -> str | None:
    return None if isinstance(value, Mapping) else "a table"


def _optional_whole(value: object) -> str | None:
    return None if value is None or (_is_int(value) and value >= 0) else "a whole number, 0 or more, or null"  # type: ignore[operator]


_POOL: Final[Mapping[str, Check]] = {
    "pool_size": _whole(0),
    "max_overflow": _whole(-1),
    "pool_timeout": _seconds(0),
    "pool_recycle": _seconds(0, never=True),
    "pool_pre_ping": _flag,
    "pool_use_lifo": _flag,
    "connect_args": _table,
}
_CONNECT: Final[Mapping[str, Check]] = {
    "connect_timeout": _whole(1),
    "prepare_threshold": _optional_whole,
    "application_name": _text,
    "options": _text,
}


def _checked(given: Mapping[str, Any], known: Mapping[str, Check], *, inside: str = "") -> dict[str, Any]:
    for name, value in given.items():
        if name not in known:
            raise PoolSettingInvalid(f"{inside}{name}", f"is unknown; known are {', '.join(sorted(known))}")
        if (wanted := known[name](value)) is not None:
            raise PoolSettingInvalid(f"{inside}{name}", f"is {wanted}")
    return dict(given)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))
