"""Arguments that check themselves before anything is sent; a refusal is a usage error (exit 2)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from aip_hermes.cli.aipctl.terminal import safe_text
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    ApprovalId,
    CapabilityId,
    EndpointId,
    HermesSessionId,
    IdempotencyKey,
    Identity,
    IdentityError,
    PrincipalId,
    ReceiptId,
    TenantId,
)

__all__ = [
    "ACTION_ID",
    "AIP_SESSION_ID",
    "APPROVAL_ID",
    "CAPABILITY_ID",
    "DOCUMENT",
    "ENDPOINT_ID",
    "HERMES_SESSION_ID",
    "IDEMPOTENCY_KEY",
    "JSON",
    "PRINCIPAL_ID",
    "RECEIPT_ID",
    "TENANT_ID",
    "TEXT",
    "URL",
    "JsonSource",
]

MAX_INPUT_BYTES = 16_777_216

if TYPE_CHECKING:
    # Generic for a type checker in new releases of click, never at run time in old ones.
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonSource:
    """JSON text that was found but not parsed yet.

    origin: how a message names it. from_file: then one leading byte order mark is nothing.
    """

    content: bytes
    origin: str
    from_file: bool

    def parsed(self) -> Any:
        """Return the value. Raises: click.UsageError naming line and column; duplicate keys and NaN are errors too."""
        from aip_hermes import wire

        try:
            return wire.read_json(self.content, allow_bom=self.from_file)
        except wire.JsonProblem as exc:
            raise click.UsageError(f"{self.origin} is not valid JSON: {safe_text(exc)}") from exc


class _Identity(_ParamType):
    def __init__(self, name: str, kind: type[Identity]) -> None:
        self.name = name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Identity:
        if isinstance(value, self._kind):
            return value
        if not value.strip():
            self.fail("is empty; was a shell variable not set?", param, ctx)
        try:
            return self._kind(value)
        except IdentityError as exc:
            self.fail(f"{exc!s}.", param, ctx)


class _Url(_ParamType):
    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if not text:
            self.fail("is empty; was a shell variable not set? Example: http://127.0.0.1:8080", param, ctx)
        try:
            parts = urlsplit(text)
            port_readable = parts.port is None or parts.port > 0
        except ValueError:
            parts, port_readable = urlsplit(""), False
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_readable or not text.isprintable():
            self.fail("is no http(s) address of a server. Example: http://127.0.0.1:8080", param, ctx)
        if parts.username is not None or parts.password is not None:
            self.fail("must not carry a user name or password; give the token by file.", param, ctx)
        return text


class _Text(_ParamType):
    """Not blank."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("is empty; was a shell variable not set?", param, ctx)
        return str(value)


class _Json(_ParamType):
    """Inline JSON, `@path`, or `-` for stdin; bytes are read here and parsed by the command."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JsonSource:
        if isinstance(value, JsonSource):
            return value
        if value == "-":
            content, origin = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1), "stdin"
        elif value.startswith("@"):
            content, origin = self._file(Path(value[1:]), param, ctx), safe_text(value[1:])
        else:
            content, origin = value.encode("utf-8", "surrogateescape"), "the JSON argument"
        if len(content) > MAX_INPUT_BYTES:
            self.fail(f"{origin} is larger than {MAX_INPUT_BYTES} bytes.", param, ctx)
        if not content.strip():
            self.fail(f"{origin} is empty; JSON is needed, for example '{{}}'.", param, ctx)
        return JsonSource(content=content, origin=origin, from_file=value.startswith("@"))

    def _file(self, path: Path, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            with path.open("rb") as stream:
                return stream.read(MAX_INPUT_BYTES + 1)
        except OSError as exc:
            self.fail(f"{safe_text(path)} can't be read: {exc.strerror}.", param, ctx)


class _Document(_Json):
    """The path of a file of JSON, or `-` for stdin."""

    name = "document"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JsonSource:
        return super().convert(value if value == "-" else f"@{value}", param, ctx)


URL = _Url()
TEXT = _Text()
JSON = _Json()
DOCUMENT = _Document()
ACTION_ID = _Identity("action id", ActionId)
APPROVAL_ID = _Identity("approval id", ApprovalId)
CAPABILITY_ID = _Identity("capability id", CapabilityId)
IDEMPOTENCY_KEY = _Identity("key", IdempotencyKey)
AIP_SESSION_ID = _Identity("session id", AipSessionId)
ENDPOINT_ID = _Identity("endpoint id", EndpointId)
HERMES_SESSION_ID = _Identity("session id", HermesSessionId)
PRINCIPAL_ID = _Identity("principal id", PrincipalId)
RECEIPT_ID = _Identity("receipt id", ReceiptId)
TENANT_ID = _Identity("tenant id", TenantId)
