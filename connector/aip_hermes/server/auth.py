"""Bearer tokens to callers. The table is the only thing that says who somebody is.

Source: HTTP surface, "Bearer header rules"; design D24.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from aip_hermes import wire
from aip_hermes.ports import Clock
from aip_hermes.runtime.caller import Caller
from aip_hermes.secret import MAX_SECRET_BYTES, Secret, SecretFileError, read_secret_file
from aip_hermes.server.failures import BearerRefused
from aip_hermes.settings import STRONG_TOKEN_CHARS, Settings, SettingsError, TokenSettings

__all__ = ["ISSUER", "TokenTable"]

ISSUER: Final = "aip-hermes:native-http"
"""Who vouches for a caller that showed a token of the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    digest: bytes
    caller: Caller
    expires_at_ms: int | None


class TokenTable:
    """Who the server knows. Replaced whole by `reload`; a request sees the old table or the new one."""

    def __init__(self, entries: Sequence[_Entry], *, clock: Clock) -> None:
        self._entries = tuple(entries)
        self._clock = clock

    @classmethod
    def of(cls, settings: Settings, *, clock: Clock) -> Self:
        """Read every token file. Raises SettingsError, naming the file and the remedy."""
        return cls(_read(settings), clock=clock)

    def reload(self, settings: Settings) -> None:
        """Read the tokens of `settings` and put them in place of the present ones.

        Raises SettingsError; then the present ones stay.
        """
        self._entries = _read(settings)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def tenants(self) -> frozenset[str]:
        """The tenants that some token belongs to."""
        return frozenset(str(e.caller.tenant_id) for e in self._entries if e.caller.tenant_id is not None)

    def authenticate(self, headers: Sequence[bytes]) -> tuple[Caller, int | None]:
        """Return the caller whose token the `Authorization` headers carry, and when the token ends (Unix ms).

        Raises BearerRefused: `missing bearer token`, `invalid bearer token`, `invalid authorization header: …`.
        """
        shown = hashlib.sha256(_token(headers)).digest()
        found: _Entry | None = None
        # Every entry is compared, whatever was found: the time must not tell which token was nearly right.
        for entry in self._entries:
            if hmac.compare_digest(entry.digest, shown):
                found = entry
        if found is None:
            raise BearerRefused("invalid bearer token")
        if found.expires_at_ms is not None and found.expires_at_ms <= self._clock.now_ms():
            raise BearerRefused(
                f"bearer token expired at {wire.rfc3339(found.expires_at_ms)}; ask the operator for a new one"
            )
        return found.caller, found.expires_at_ms


def _token(headers: Sequence[bytes]) -> bytes:
    if not headers:
        raise BearerRefused("missing bearer token")
    if len(headers) > 1:
        raise BearerRefused("invalid authorization header: sent more than once")
    value = headers[0]
    if any(byte != 0x09 and not 0x20 <= byte < 0x7F for byte in value):
        raise BearerRefused("invalid authorization header: not visible ASCII")
    if not value.startswith(b"Bearer "):
        raise BearerRefused("missing bearer token")
    token = value[len(b"Bearer ") :].strip(b" \t")
    if not token:
        raise BearerRefused("missing bearer token")
    if len(token) > MAX_SECRET_BYTES:
        raise BearerRefused("invalid bearer token")
    return token


def _read(settings: Settings) -> tuple[_Entry, ...]:
    entries: list[_Entry] = []
    for index, token in enumerate(settings.tokens):
        try:
            secret = read_secret_file(token.file)
            _check_strength(secret, strong=not settings.server.loopback)
        except (SecretFileError, ValueError) as exc:
            rule = f"can't be used: {exc}"
            if not os.path.lexists(token.file):
                rule += f"; write a token into it, as `openssl rand -hex 32` makes one, then `chmod 600 {token.file}`"
            raise SettingsError(settings.path, rule, member=f"tokens[{index}].file") from None
        entry = _entry(secret, token)
        twin = next((number for number, other in enumerate(entries) if other.digest == entry.digest), None)
        if twin is not None:
            rule = f"holds the same token as tokens[{twin}].file; write another token into it"
            raise SettingsError(settings.path, rule, member=f"tokens[{index}].file")
        entries.append(entry)
    return tuple(entries)


def _check_strength(secret: Secret, *, strong: bool) -> None:
    if not secret.reveal().isascii():
        raise ValueError("a bearer token is ASCII: it travels in a header")
    if strong and len(secret.reveal()) < STRONG_TOKEN_CHARS:
        raise ValueError(
            f"other machines can reach this server, so a token needs {STRONG_TOKEN_CHARS} characters or more; "
            "`openssl rand -hex 32` makes one"
        )


def _entry(secret: Secret, token: TokenSettings) -> _Entry:
    return _Entry(
        digest=hashlib.sha256(secret.reveal().encode("ascii")).digest(),
        caller=Caller(
            principal=wire.Principal(id=token.principal, kind=wire.principal_kind(token.principal)),
            tenant_id=token.tenant,
            scopes=token.scopes,
            invoke=token.invoke,
            issuer=ISSUER,
        ),
        expires_at_ms=token.expires_at_ms,
    )
