"""Where a PostgreSQL store is: the addresses that are taken, and how one is named to a person."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["PostgresAddress", "postgres_address"]

_SCHEMES: Final = ("postgresql+psycopg", "postgresql", "postgres")
_WITH_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, kw_only=True, slots=True)
class PostgresAddress:
    """conninfo: a libpq URI, password included; never for a message. shown: host or socket folder, port, database."""

    conninfo: str = field(repr=False)
    shown: str
    has_password: bool = False


def postgres_address(text: str) -> PostgresAddress | None:
    """Return the address that `text` names, None where it is the path of a file.

    Taken are `postgresql+psycopg://`, `postgresql://` and `postgres://` with a host, or with a socket folder as
    `?host=/folder`, and a database name. Raises ValueError for another scheme, without a database, without a host;
    the message carries neither user nor password.
    """
    head = _WITH_SCHEME.match(text)
    if head is None:
        return None
    if head["scheme"].lower() not in _SCHEMES:
        raise ValueError(
            f"a store is a file or a postgresql:// address; {head['scheme']}:// is neither. "
            "Write postgresql://user@host:5432/database"
        )
    parts = urlsplit("postgresql://" + text[head.end() :])
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port of the postgresql:// address is no number from 0 to 65535") from None
    database = unquote(parts.path.removeprefix("/"))
    asked = parse_qs(parts.query)
    host = parts.hostname or (asked.get("host") or [""])[-1]
    if not database or not host:
        raise ValueError(
            "a postgresql:// address names a host and a database: postgresql://user@host:5432/database, or "
            "postgresql://user@/database?host=/folder/of/the/socket"
        )
    shown = f"{host}{f':{port}' if port else ''}/{database}"
    has_password = parts.password is not None or "password" in asked
    return PostgresAddress(conninfo="postgresql://" + text[head.end() :], shown=shown, has_password=has_password)
