"""The tables of the TOML file as written, and the sentence for the first thing that is wrong with them."""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aip_hermes.settings.values import SettingsError

__all__ = [
    "EndpointTable",
    "FileTable",
    "OperatorTable",
    "ReconcileTable",
    "ServerTable",
    "TokenTable",
    "dotted",
    "line_of",
    "parse",
    "read_text",
]

_MAX_FILE_BYTES: Final = 1024 * 1024

Loc = Sequence[str | int]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ServerTable(_Table):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    public_base_url: str | None = None
    service_id: str = "service:aip-hermes:server"


class EndpointTable(_Table):
    id: str
    base_url: str
    key_file: str | None = None
    tenant_id: str | None = None
    display_name: str | None = None
    turn_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 900
    on_closed: Literal["forward", "refuse"] = "forward"
    approver_selector: str | None = None
    approvers: int | None = None
    approval_ttl_s: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = None


class TokenTable(_Table):
    file: str
    principal: str
    tenant: str | None = None
    scopes: list[str] = []
    invoke: list[str] = ["*"]
    expires_at: datetime | str | None = None


class StoreTable(_Table):
    dsn: str = "data/aip.sqlite3"


class ConnectTable(_Table):
    """What is not written here is as `ConnectSettings` has it."""

    connect_timeout: int | None = None
    prepare_threshold: int | Literal["never"] | None = None
    application_name: str | None = None
    options: str | None = None


class PostgresTable(_Table):
    """What is not written here is as `PoolSettings` has it."""

    pool_size: int | None = None
    max_overflow: int | None = None
    pool_timeout: float | None = None
    pool_recycle: float | None = None
    pool_pre_ping: bool | None = None
    pool_use_lifo: bool | None = None
    connect_args: ConnectTable = ConnectTable()


class DatabaseTable(_Table):
    postgres: PostgresTable = PostgresTable()


class ApprovalsTable(_Table):
    authority_file: str | None = None


_Actions = Annotated[int, Field(ge=1, le=1_000_000)]
"""A number of actions."""


class LimitsTable(_Table):
    max_request_bytes: Annotated[int, Field(ge=4096, le=64 * 1024 * 1024)] = 1024 * 1024
    max_running: _Actions = 2_000
    max_running_per_tenant: _Actions = 1_000
    max_queued: _Actions = 50_000
    max_queued_per_tenant: _Actions = 10_000
    max_waiting: _Actions = 50_000
    max_waiting_per_tenant: _Actions = 10_000


class RetentionTable(_Table):
    transcripts_hours: Annotated[float, Field(gt=0, le=8760)] = 24


_Quiet = Annotated[float, Field(ge=0, le=7 * 86_400)]
"""Seconds."""


class ReconcileTable(_Table):
    quiet_rows_s: _Quiet = 60
    quiet_turns_s: _Quiet | None = None
    clock_slack_s: Annotated[float, Field(ge=0, le=3_600)] = 5


class OperatorTable(_Table):
    """What is not written here is as the policy has it."""

    delegation_enabled: bool | None = None
    delegation_requires_approval: bool | None = None
    delegation_approval_exempt_capability_prefixes: list[str] | None = None
    model: str | None = None
    system_instructions: str | None = None
    timeout_ms: int | None = None
    poll_interval_ms: int | None = None
    max_events: int | None = None
    max_input_bytes: int | None = None
    max_delegation_depth: int | None = None
    start_claim_ttl_ms: int | None = None
    cancel_grace_ms: int | None = None
    allowed_capability_prefixes: list[str] | None = None
    allowed_scope_prefixes: list[str] | None = None


class LogTable(_Table):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class NotifyTable(_Table):
    url: str
    secret_file: str


class TracingTable(_Table):
    enabled: bool = False


class FileTable(_Table):
    server: ServerTable = ServerTable()
    endpoints: Annotated[list[EndpointTable], Field(min_length=1)]
    tokens: Annotated[list[TokenTable], Field(min_length=1)]
    store: StoreTable = StoreTable()
    database: DatabaseTable = DatabaseTable()
    approvals: ApprovalsTable = ApprovalsTable()
    limits: LimitsTable = LimitsTable()
    retention: RetentionTable = RetentionTable()
    reconcile: ReconcileTable = ReconcileTable()
    operator: OperatorTable = OperatorTable()
    log: LogTable = LogTable()
    notify: NotifyTable | None = None
    tracing: TracingTable = TracingTable()


_TABLES: Final[Mapping[str, type[_Table]]] = MappingProxyType(
    {
        "": FileTable,
        "server": ServerTable,
        "endpoints": EndpointTable,
        "tokens": TokenTable,
        "store": StoreTable,
        "database": DatabaseTable,
        "database.postgres": PostgresTable,
        "database.postgres.connect_args": ConnectTable,
        "approvals": ApprovalsTable,
        "limits": LimitsTable,
        "retention": RetentionTable,
        "reconcile": ReconcileTable,
        "operator": OperatorTable,
        "log": LogTable,
        "notify": NotifyTable,
        "tracing": TracingTable,
    }
)

_HABITS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("server", "address"): "host",
        ("server", "bind"): "host",
        ("server", "listen"): "host",
        ("endpoints", "api_key"): "key_file",
        ("endpoints", "key"): "key_file",
        ("endpoints", "url"): "base_url",
        ("tokens", "expires"): "expires_at",
        ("tokens", "token"): "file",
        ("store", "database"): "dsn",
        ("store", "path"): "dsn",
        ("approvals", "file"): "authority_file",
        ("notify", "secret"): "secret_file",
        ("operator", "instructions"): "system_instructions",
    }
)
"""What people write by habit, and our name for the same thing where spelling alone would not find it."""


def read_text(path: Path) -> str:
    """Read a configuration file: regular, at most 1 MiB, UTF-8, not writable by group or others.

    Raises SettingsError. Source: HTTP surface, "Token and secret files".
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        hint = "`aip-hermes init DIR` writes one" if isinstance(exc, FileNotFoundError) else "name a readable file"
        raise SettingsError(path, f"can't be opened: {(exc.strerror or 'unknown').lower()}; {hint}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise SettingsError(path, "is no regular file; name the settings file itself")
    with open(descriptor, "rb") as stream:
        if status.st_mode & 0o022:
            raise SettingsError(path, f"can be changed by others; run `chmod go-w {path}`")
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise SettingsError(path, "is larger than 1 MiB; name the settings file itself")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SettingsError(path, f"is not UTF-8 at byte {exc.start}; save it as UTF-8") from None


def parse(path: Path, text: str) -> FileTable:
    """Return the tables of `text`. Raises SettingsError for the first violation."""
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        reason = re.sub(r" \(at end of document\)$", " at the end", str(exc))
        place = re.search(r" \(at line (\d+), column (\d+)\)$", reason)
        said = reason[: place.start()] if place else reason
        # The parser quotes a repeated name or a bad value; where it stands is enough.
        said = re.sub(r"[:,]?\s*['\"].*", "", said).strip()
        column = f" at column {place[2]}" if place else ""
        raise SettingsError(
            path,
            f"is not TOML{column}: {said[:1].lower()}{said[1:]}; correct the line",
            line=int(place[1]) if place else None,
        ) from None
    try:
        return FileTable.model_validate(raw)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        loc = tuple(part for part in first["loc"] if part not in ("datetime", "str"))
        raise SettingsError(path, _rule(first, loc), member=dotted(loc), line=line_of(text, loc)) from None


def dotted(loc: Loc) -> str:
    """Spell a place in the file: `tokens[1].file` is the second token's file."""
    spelled = ""
    for part in loc:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else part
    return spelled


def line_of(text: str, loc: Loc) -> int | None:
    """Return the line of a member, or of its table's header where the member is missing; None where nothing fits."""
    table, index, member = _split(loc)
    found: int | None = None
    current, seen = "", -1
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            current = header[1]
            seen += current == table
            if len(loc) == 1 and current == loc[0]:
                return number
        inside = current == table and (index is None or seen == index)
        if not inside:
            continue
        if header:
            found = number
        name = _NAME.match(line)
        if member and not header and name and name[1].strip("\"'") == member:
            return number
    return found


_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(?:#.*)?$")
_NAME = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


def _split(loc: Loc) -> tuple[str, int | None, str]:
    names = [part for part in loc if isinstance(part, str)]
    numbers = [part for part in loc if isinstance(part, int)]
    if len(loc) == 1:
        return "", None, names[0]
    return names[0], numbers[0] if isinstance(loc[1], int) else None, names[1] if len(names) > 1 else ""


def _rule(error: Mapping[str, Any], loc: Loc) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(loc[-1]), table=str(loc[0]) if len(loc) > 1 else "")
    if kind == "missing":
        return "is missing; add it"
    if kind == "too_short":
        return f"has no entry; add at least one [[{loc[-1]}]] table"
    said = str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    if kind == "literal_error":
        said = str(context.get("expected", said))
    return f"must be {said}; correct it"


def _unknown(name: str, *, table: str) -> str:
    known = list(_TABLES.get(table, FileTable).model_fields)
    near = _HABITS.get((table, name)) or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)
    if near is not None:
        return f"is no known member; did you mean `{near}`?"
    return f"is no known member; known are {', '.join(known)}"
