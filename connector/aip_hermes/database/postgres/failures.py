"""What a failure of PostgreSQL or of its driver means to the caller of a store."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from aip_hermes.database.failures import FailureOfStore, StoreConflict, StoreFailure, StoreUnavailable

__all__ = ["must_be_repeated", "translated"]

_REPEATED: Final = (errors.SerializationFailure, errors.DeadlockDetected)
_KINDS: Final[tuple[tuple[type[Exception], FailureOfStore, str], ...]] = (
    (errors.LockNotAvailable, "locked", "a row is locked by another operation"),
    (errors.QueryCanceled, "locked", "a statement took longer than the server allows"),
    (errors.DiskFull, "disk_full", "the server's disk is full"),
    (errors.ProgramLimitExceeded, "other", "a value is longer than the server's indexes take"),
    (errors.DataCorrupted, "corrupt", "the server found damaged data"),
    (errors.IndexCorrupted, "corrupt", "the server found a damaged index"),
    (errors.InvalidPassword, "other", "the server refused the password"),
    (errors.InvalidAuthorizationSpecification, "other", "the server refused the user"),
    (errors.InvalidCatalogName, "missing", "the database does not exist"),
    (errors.TooManyConnections, "locked", "the server has no connection left"),
    (errors.ReadOnlySqlTransaction, "other", "the server takes no writes: it is a standby, or was set to read only"),
    (errors.InsufficientPrivilege, "other", "the user may not do this"),
    (PoolTimeout, "locked", "no connection came free in time; see pool_size, max_overflow and pool_timeout"),
    (PoolClosed, "closed", "the store is closed"),
    (psycopg.OperationalError, "io", "the server cannot be reached or went away"),
)


def must_be_repeated(error: BaseException) -> bool:
    """Say whether the engine undid the transaction because of another one, so that running it again is right."""
    return isinstance(error, _REPEATED)


def translated(error: Exception) -> StoreFailure:
    """Return what `error` means here. The driver's own text is left out: it may name users, hosts and row contents."""
    if isinstance(error, psycopg.IntegrityError):
        constraint = error.diag.constraint_name or error.diag.column_name or "a constraint"
        return StoreConflict(f"{constraint} refused the row")
    for kind, meaning, sentence in _KINDS:
        if isinstance(error, kind):
            return StoreUnavailable(f"the store is not available: {sentence}", kind=meaning)
    if must_be_repeated(error):
        return StoreUnavailable("the store is not available: too many operations on the same rows", kind="locked")
    code = getattr(error, "sqlstate", None)
    return StoreUnavailable(f"the store is not available: {type(error).__name__} {code or ''}".rstrip())
