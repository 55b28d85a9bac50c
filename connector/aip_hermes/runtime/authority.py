"""Who may decide: the approval authority file, and whether an authority fits a request.

Source: AIP HTTP surface, "Who may decide"; runtime behaviour §9.3, step 8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aip_hermes import wire
from aip_hermes.ports import Clock, SystemClock

__all__ = ["Authorities", "AuthorityEntry", "AuthorityFileError", "DelegatedScope"]


class AuthorityFileError(Exception):
    """The file can't be used; the text names the path and the rule."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _ms(text: str | None) -> int | None:
    return None if text is None else wire.parse_rfc3339(text)


class DelegatedScope(_Strict):
    """max_risk_rank: 1 low to 4 critical. Not asked by any published policy; kept with the entry."""

    scope: str
    expires_at: str
    revoked: bool
    max_risk_rank: Annotated[int, Field(ge=1, le=4)] | None = None
    max_value: Annotated[int, Field(ge=0)] | None = None


class AuthorityEntry(_Strict):
    """One reviewer's standing."""

    principal_id: Annotated[str, Field(min_length=1)]
    tenant_id: str | None
    roles: tuple[str, ...]
    groups: tuple[str, ...]
    tenant_policies: tuple[str, ...]
    external_systems: tuple[str, ...]
    delegated_scopes: tuple[DelegatedScope, ...]
    revision: Annotated[int, Field(ge=1)]
    revoked: bool
    expires_at: str | None = None

    def valid(self, now_ms: int) -> bool:
        """Whether the entry is neither revoked nor expired."""
        expires = _ms(self.expires_at)
        return not self.revoked and (expires is None or expires > now_ms)

    def fits(self, selector: wire.ApproverSelector, *, tenant: str) -> bool:
        """Whether this authority may decide a request of `tenant` (empty: none) with that selector."""
        if tenant and self.tenant_id != tenant:
            return False
        match selector:
            case wire.PrincipalSelector(id=principal_id):
                return principal_id == self.principal_id
            case wire.RoleSelector(name=name):
                return name in self.roles
            case wire.GroupSelector(name=name):
                return name in self.groups
            case wire.ExternalSystemSelector(system=system):
                return system in self.external_systems
            case wire.TenantPolicySelector():
                return bool(self.tenant_policies) or bool(tenant)
        return False

    def path(self) -> list[str]:
        """Return the authority path as a decision records it."""
        return [
            f"principal:{self.principal_id}",
            *([f"tenant:{self.tenant_id}"] if self.tenant_id else []),
            *(f"role:{name}" for name in self.roles),
            *(f"group:{name}" for name in self.groups),
            *(f"tenant_policy:{name}" for name in self.tenant_policies),
            *(f"external_system:{name}" for name in self.external_systems),
            f"authority_revision:{self.revision}",
        ]


class Authorities:
    """All reviewers of a deployment. Without entries every decision is refused."""

    def __init__(self, entries: Iterable[AuthorityEntry] = ()) -> None:
        self._entries: Mapping[str, AuthorityEntry] = {entry.principal_id: entry for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def resolve(self, principal_id: str, *, now_ms: int) -> AuthorityEntry | None:
        """Return the valid entry of a principal, or None."""
        entry = self._entries.get(principal_id)
        return entry if entry is not None and entry.valid(now_ms) else None

    @classmethod
    def load(cls, path: Path, *, clock: Clock | None = None) -> Self:
        """Read the file: a JSON array with at least one entry.

        Raises: AuthorityFileError for an unreadable file, a repeated, unknown or missing member, a principal named
        twice, a revoked or an expired entry.
        """
        now_ms = (clock or SystemClock()).now_ms()
        try:
            raw = wire.read_json(path.read_bytes(), allow_bom=True)
        except OSError as exc:
            reason = (exc.strerror or "refused").lower()
            raise AuthorityFileError(f"{path} can't be read: {reason}; `aip-hermes init DIR` writes one") from exc
        except wire.JsonProblem as exc:
            raise AuthorityFileError(f"{path}, {exc}; correct it") from None
        if not isinstance(raw, list) or not raw:
            raise AuthorityFileError(f"{path}: a JSON array with at least one entry is needed")
        entries: dict[str, AuthorityEntry] = {}
        for place, member in enumerate(raw, start=1):
            entry = _entry(path, place, member)
            if entry.principal_id in entries:
                raise AuthorityFileError(f"{path}: entry {place} names {entry.principal_id} a second time")
            if not entry.valid(now_ms):
                raise AuthorityFileError(f"{path}: entry {place} ({entry.principal_id}) is revoked or expired")
            entries[entry.principal_id] = entry
        return cls(entries.values())


def _entry(path: Path, place: int, member: object) -> AuthorityEntry:
    try:
        entry = AuthorityEntry.model_validate_json(json.dumps(member))
        for text in (entry.expires_at, *(scope.expires_at for scope in entry.delegated_scopes)):
            _ms(text)
    except ValidationError as exc:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}"
            for error in exc.errors(include_url=False, include_input=False)
        )
        raise AuthorityFileError(f"{path}: entry {place}: {problems}") from exc
    except ValueError as exc:
        raise AuthorityFileError(f"{path}: entry {place}: expires_at: {exc}") from exc
    return entry
