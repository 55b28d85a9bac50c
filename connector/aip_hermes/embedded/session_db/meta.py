"""Values that the store keeps of itself: texts by their keys. Plain functions of one transaction."""

from __future__ import annotations

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["claim", "forget", "value_of", "write"]


def value_of(connection: Connection, key: str) -> str | None:
    """Return a value, or None."""
    rows = connection.execute(QUERIES["fetch_meta"], {"key": scrubbed(key)})
    return rows[0]["value"] if rows else None


def write(connection: Connection, key: str, value: str) -> None:
    """Write a value in the place of the one before."""
    connection.execute(QUERIES["write_meta"], {"key": scrubbed(key), "value": scrubbed(value)})


def forget(connection: Connection, key: str) -> None:
    """Remove a value; where there is none nothing is to do."""
    connection.execute(QUERIES["delete_meta"], {"key": scrubbed(key)})


def claim(connection: Connection, key: str, *, now: float, every_s: float) -> bool:
    """Note that `key` is done now and return True, unless it was done within the last `every_s` seconds.

    Of several processes that ask at once, one gets True. A time in the future, of a clock that was wrong, counts not.
    """
    noted = value_of(connection, key)
    try:
        last = None if noted is None else float(noted)
    except ValueError:
        last = None
    if last is not None and last <= now < last + every_s:
        return False
    write(connection, key, repr(now))
    return True
