"""The frozen objects of a settings file, except the endpoints, which the connector defines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from aip_hermes.database import Place, SharedPlace, StoreRefused
from aip_hermes.ids import PrincipalId, TenantId
from aip_hermes.loopback import bound_for_this_machine_only
from aip_hermes.secret import Secret

__all__ = [
    "STRONG_TOKEN_CHARS",
    "LimitSettings",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "NotifySettings",
    "RetentionSettings",
    "ServerSettings",
    "SettingsError",
    "StoreSettings",
    "TokenSettings",
]

STRONG_TOKEN_CHARS: Final = 16
"""The least length of a bearer token where others can reach the server."""


class SettingsError(Exception):
    """The settings can't be used. `str()` is for a person: file, line, member, rule, next step; never a value."""

    def __init__(self, path: Path, rule: str, *, member: str = "", line: int | None = None) -> None:
        place = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{place}: `{member}` {rule}" if member else f"{place}: {rule}")
        self.path = path
        self.member = member
        self.rule = rule
        self.line = line


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """Where the server listens and who it is.

    port: 0 picks a free one. public_base_url: how others reach it, without a path. service_id: the principal of its
    answers (`from`), published in the manifest.
    """

    host: str
    port: int
    public_base_url: str | None
    service_id: PrincipalId

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return bound_for_this_machine_only(self.host)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSettings:
    """Whom a bearer token stands for (design D24).

    file: holds the token alone. scopes: see HTTP surface, "Scopes". invoke: patterns (`*`, `?`, `[…]`) of capability
    ids that it may submit. expires_at_ms: Unix milliseconds; None: never.
    """

    file: Path
    principal: PrincipalId
    tenant: TenantId | None
    scopes: frozenset[str]
    invoke: tuple[str, ...]
    expires_at_ms: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreSettings:
    """place: a SQLite file, whose folder belongs to one running server, or a PostgreSQL database that several share."""

    place: Place

    @property
    def path(self) -> Path:
        """The SQLite file. Raises StoreRefused where the store is a database."""
        if isinstance(self.place, SharedPlace):
            raise StoreRefused(
                f"the store is the database {self.place.address.shown}, not a file: `pg_dump` and `pg_restore` copy it"
            )
        return self.place


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """max_request_bytes: of one envelope, advertised in the manifest (design D21). The others: how many actions may run
    at a time, wait in the queue and wait for a decision; of all, and of one tenant."""

    max_request_bytes: int
    max_running: int = 2_000
    max_running_per_tenant: int = 1_000
    max_queued: int = 50_000
    max_queued_per_tenant: int = 10_000
    max_waiting: int = 50_000
    max_waiting_per_tenant: int = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionSettings:
    """transcripts_ms: how long outputs and chunks that hold a transcript are kept (design D23)."""

    transcripts_ms: int = 86_400_000


LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogSettings:
    """level: the least that is written. format: `auto` is text on a terminal and one JSON object per line elsewhere."""

    level: LogLevel = "info"
    format: LogFormat = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotifySettings:
    """Who is told that an approval waits. url: https, or http on this machine. secret: signs what is sent."""

    url: str
    secret: Secret = field(repr=False)
