"""From tables to settings: the checks that need more than one member, the folder, or a file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from aip_hermes.contract.approval_terms import ApprovalTerms, ApprovalTermsInvalid
from aip_hermes.database import Place, SharedPlace, pool_settings, postgres_address
from aip_hermes.database.pool_settings import NAME, PoolSettingInvalid
from aip_hermes.hermes.endpoint import Endpoint, EndpointInvalid
from aip_hermes.hermes.operator import OperatorPolicy, OperatorPolicyInvalid
from aip_hermes.hermes.reconcile import QuietTimes
from aip_hermes.ids import IdentityError, PrincipalId, TenantId
from aip_hermes.loopback import bound_for_this_machine_only, dials_this_machine
from aip_hermes.secret import Secret, SecretFileError, read_secret_file
from aip_hermes.settings.tables import (
    EndpointTable,
    FileTable,
    NotifyTable,
    OperatorTable,
    PostgresTable,
    ServerTable,
    TokenTable,
    dotted,
    line_of,
    parse,
    read_text,
)
from aip_hermes.settings.values import (
    STRONG_TOKEN_CHARS,
    LimitSettings,
    LogSettings,
    NotifySettings,
    RetentionSettings,
    ServerSettings,
    SettingsError,
    StoreSettings,
    TokenSettings,
)

__all__ = ["Settings"]

_API_KEY: Final = "write the API_SERVER_KEY of that Hermes server into it"
_SIGNS: Final = "write a secret of your own into it, as `openssl rand -hex 32` makes one"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The whole file.

    path: where it was read from. authority_file: who may decide approvals; None refuses every decision. operator: the
    rules of every run that the operator starts. reconcile: when absence proves something.
    """

    path: Path
    server: ServerSettings
    endpoints: tuple[Endpoint, ...]
    tokens: tuple[TokenSettings, ...]
    store: StoreSettings
    authority_file: Path | None
    limits: LimitSettings
    retention: RetentionSettings = RetentionSettings()  # noqa: RUF009  frozen
    reconcile: QuietTimes = field(default_factory=QuietTimes)
    operator: OperatorPolicy = field(default_factory=OperatorPolicy)
    log: LogSettings = field(default_factory=LogSettings)
    notify: NotifySettings | None = None
    tracing: bool = False

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read and check the file and the endpoints' key files. Raises SettingsError.

        Token files are read by the server, again at every reload.
        """
        place = Path(path).absolute()
        text = read_text(place)
        file = parse(place, text)
        check = _Check(place, text)
        endpoints = tuple(check.endpoint(table, "endpoints", index) for index, table in enumerate(file.endpoints))
        check.unique([str(endpoint.id) for endpoint in endpoints], "endpoints", "id")
        tokens = tuple(check.token(table, "tokens", index) for index, table in enumerate(file.tokens))
        check.unique([str(token.file) for token in tokens], "tokens", "file")
        return cls(
            path=place,
            server=check.server(file.server),
            endpoints=endpoints,
            tokens=tokens,
            store=StoreSettings(place=check.store(file.store.dsn, file.database.postgres)),
            authority_file=check.authority(file),
            limits=LimitSettings(**file.limits.model_dump()),
            retention=RetentionSettings(transcripts_ms=round(file.retention.transcripts_hours * 3_600_000)),
            log=LogSettings(level=file.log.level, format=file.log.format),
            notify=None if file.notify is None else check.notify(file.notify),
            tracing=file.tracing.enabled,
            operator=check.operator(file.operator),
            reconcile=QuietTimes(
                rows_s=file.reconcile.quiet_rows_s,
                turns_s=file.reconcile.quiet_turns_s,
                slack_s=file.reconcile.clock_slack_s,
            ),
        )


class _Check:
    """Turns written values into checked ones; every refusal names the place in the file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def fail(self, rule: str, *loc: str | int) -> SettingsError:
        return SettingsError(self._path, rule, member=dotted(loc), line=line_of(self._text, loc))

    def server(self, raw: ServerTable) -> ServerSettings:
        loopback = bound_for_this_machine_only(raw.host)
        if not _HOST.fullmatch(raw.host):
            raise self.fail('must be an IP address or `localhost`, e.g. host = "127.0.0.1"', "server", "host")
        if raw.public_base_url is not None:
            self._public_url(raw.public_base_url, https=not loopback)
        elif not loopback:
            rule = (
                "lets other machines reach the server, so `public_base_url` must give the https:// address of the "
                'proxy that ends TLS; for this machine alone write host = "127.0.0.1"'
            )
            raise self.fail(rule, "server", "host")
        return ServerSettings(
            host=raw.host,
            port=raw.port,
            public_base_url=raw.public_base_url,
            service_id=self._service(raw.service_id),
        )

    def _service(self, value: str) -> PrincipalId:
        if not value.startswith("service:"):
            raise self.fail("must start with `service:`, e.g. service:example:aip", "server", "service_id")
        return self._principal(value, "server", "service_id")

    def _public_url(self, url: str, *, https: bool) -> None:
        try:
            parts = urlsplit(url)
            fine = parts.scheme in (("https",) if https else ("http", "https"))
            fine = fine and bool(parts.hostname) and parts.path in ("", "/") and parts.port != 0
            fine = fine and "@" not in parts.netloc and "?" not in url and "#" not in url
        except ValueError:
            fine = False
        if not fine:
            scheme = "https" if https else "http or https"
            rule = f"must be {scheme}://host[:port] without user, path or query, e.g. https://aip.example.org"
            raise self.fail(rule, "server", "public_base_url")

    def endpoint(self, raw: EndpointTable, *loc: str | int) -> Endpoint:
        key = None if raw.key_file is None else self._secret(raw.key_file, *loc, "key_file")
        try:
            # The id is lower-cased here, once: `Primary` is published, and looked up, as `primary`.
            return Endpoint.check(
                id=raw.id,
                base_url=raw.base_url,
                key=key,
                tenant_id=raw.tenant_id,
                display_name=raw.display_name,
                turn_timeout_s=raw.turn_timeout_s,
                on_closed=raw.on_closed,
                approval=self._approval_terms(raw, *loc),
            )
        except EndpointInvalid as exc:
            raise self.fail(f"{exc}; correct it", *loc) from None

    def _approval_terms(self, raw: EndpointTable, *loc: str | int) -> ApprovalTerms | None:
        try:
            return ApprovalTerms.of_settings(
                selector=raw.approver_selector, approvers=raw.approvers, ttl_s=raw.approval_ttl_s
            )
        except ApprovalTermsInvalid as exc:
            member = "approver_selector" if raw.approver_selector is not None else "approvers"
            raise self.fail(f"can't be kept: {exc}", *loc, member) from None

    def token(self, raw: TokenTable, *loc: str | int) -> TokenSettings:
        for member, entries in (("scopes", raw.scopes), ("invoke", raw.invoke)):
            if not all(_WORD.fullmatch(entry) for entry in entries):
                raise self.fail('must be a list of words without blanks, e.g. ["action:read"]', *loc, member)
        return TokenSettings(
            file=self._file(raw.file, *loc, "file"),
            principal=self._principal(raw.principal, *loc, "principal"),
            tenant=None if raw.tenant is None else self._tenant(raw.tenant, *loc, "tenant"),
            scopes=frozenset(raw.scopes),
            invoke=tuple(raw.invoke),
            expires_at_ms=None if raw.expires_at is None else self._time(raw.expires_at, *loc, "expires_at"),
        )

    def store(self, dsn: str, pool: PostgresTable) -> Place:
        scheme, separator, rest = dsn.partition("://")
        if separator and scheme != "sqlite":
            return self._shared(dsn, pool)
        if separator and not rest.startswith("/"):
            rule = "must be a path, sqlite:///path with three slashes, or postgresql://user@host:5432/database"
            raise self.fail(rule, "store", "dsn")
        if pool.model_fields_set:
            raise self.fail("is for a store on PostgreSQL; `store.dsn` names a file", "database", "postgres")
        # One slash of three belongs to the scheme: sqlite:///x is relative, sqlite:////x absolute.
        return self._file(rest[1:] if separator else dsn, "store", "dsn")

    def _shared(self, dsn: str, raw: PostgresTable) -> SharedPlace:
        try:
            address = postgres_address(dsn)
        except ValueError as exc:
            raise self.fail(f"leads to no store: {exc}", "store", "dsn") from None
        assert address is not None  # noqa: S101 - it has a scheme
        if address.has_password:
            rule = "holds a password; write it into a file (0600) that `?passfile=/path` or PGPASSFILE names"
            raise self.fail(rule, "store", "dsn")
        written = raw.model_dump(exclude_unset=True)
        if written.get("connect_args", {}).get("prepare_threshold") == "never":
            written["connect_args"]["prepare_threshold"] = None
        try:
            return SharedPlace(address=address, pool=pool_settings(written))
        except PoolSettingInvalid as exc:
            raise self.fail(exc.rule, *NAME.split("."), *exc.member.split(".")) from None

    def notify(self, raw: NotifyTable) -> NotifySettings:
        try:
            parts = urlsplit(raw.url)
            fine = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
            fine = fine and "@" not in parts.netloc and not parts.fragment and _URL.fullmatch(raw.url) is not None
            fine = fine and (parts.scheme == "https" or dials_this_machine(parts.hostname or ""))
        except ValueError:
            fine = False
        if not fine:
            rule = "must be an https:// address without user, or an http:// one of this machine"
            raise self.fail(rule, "notify", "url")
        secret = self._secret(raw.secret_file, "notify", "secret_file", makes=_SIGNS)
        if len(secret.reveal()) < STRONG_TOKEN_CHARS:
            rule = f"holds a secret of fewer than {STRONG_TOKEN_CHARS} characters; `openssl rand -hex 32` makes one"
            raise self.fail(rule, "notify", "secret_file")
        return NotifySettings(url=raw.url, secret=secret)

    def authority(self, file: FileTable) -> Path | None:
        named = file.approvals.authority_file
        return None if named is None else self._file(named, "approvals", "authority_file")

    def operator(self, raw: OperatorTable) -> OperatorPolicy:
        written: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in raw.model_dump().items()
            if value is not None
        }
        try:
            return OperatorPolicy(**written)
        except OperatorPolicyInvalid as exc:
            raise self.fail(exc.rule, "operator", exc.member) from None

    def unique(self, values: Sequence[str], table: str, member: str) -> None:
        for index, value in enumerate(values):
            if value in values[:index]:
                rule = f"is the same as in an earlier [[{table}]] table; give it another one or remove the table"
                raise self.fail(rule, table, index, member)

    def _time(self, value: datetime | str, *loc: str | int) -> int:
        try:
            moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self.fail("must be a time with an offset, e.g. 2031-01-01T00:00:00Z", *loc)
        return int(moment.timestamp() * 1000)

    def _file(self, value: str, *loc: str | int) -> Path:
        if not value.strip() or "\0" in value:
            raise self.fail("must name a file", *loc)
        return self._path.parent / Path(value).expanduser()

    def _secret(self, value: str, *loc: str | int, makes: str = _API_KEY) -> Secret:
        file = self._file(value, *loc)
        try:
            return read_secret_file(file)
        except SecretFileError as exc:
            rule = f"names a file that can't be used: {exc}"
            if not os.path.lexists(file):
                rule += f"; {makes}, then `chmod 600 {file}`"
            raise self.fail(rule, *loc) from None

    def _principal(self, value: str, *loc: str | int) -> PrincipalId:
        if not _WORD.fullmatch(value):
            raise self.fail("must be 1–512 characters without blanks, e.g. human:example:reviewer", *loc)
        return PrincipalId(value)

    def _tenant(self, value: str, *loc: str | int) -> TenantId:
        try:
            return TenantId(value)
        except IdentityError as exc:
            raise self.fail(f"is no tenant: {exc}", *loc) from None


_WORD = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]{1,512}")
_URL = re.compile(r"[\x21-\x7e]{1,2048}")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
