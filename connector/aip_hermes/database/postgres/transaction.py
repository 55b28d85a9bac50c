"""One transaction on one connection, and what became of it when the answer to its COMMIT was lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, Literal, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from aip_hermes.database.postgres.failures import must_be_repeated

__all__ = ["READ", "WRITE", "CommitLost", "Raw", "fate", "in_transaction"]

T = TypeVar("T")
Raw = psycopg.Connection[tuple[Any, ...]]

WRITE: Final = b"BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT pg_current_xact_id()::text"
READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_OPEN: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)


class CommitLost(Exception, Generic[T]):
    """The connection broke while COMMIT was under way. result: what the operation would have answered. transaction: the
    server's id of it, None where it only read.
    """

    def __init__(self, result: T, transaction: str | None) -> None:
        super().__init__("the answer to a commit was lost")
        self.result = result
        self.transaction = transaction


def in_transaction(raw: Raw, begin: bytes, function: Callable[[psycopg.Cursor[tuple[Any, ...]]], T]) -> T:
    """Run `function` between BEGIN and COMMIT; whatever it raises undoes everything. Raises CommitLost."""
    # A write has its id before anything else: whoever reads a log by the numbers of its rows knows by these ids which
    # of them may still come.
    begun = raw.execute(begin, prepare=False)
    try:
        transaction = None if begin is READ else _id_in(begun)
        with raw.cursor() as cursor:
            result = function(cursor)
        if raw.info.transaction_status is TransactionStatus.INERROR:
            # COMMIT would be answered without an error and keep nothing.
            raise RuntimeError("the operation went on after the server had refused one of its statements")
    except BaseException:
        if raw.info.transaction_status in _OPEN:
            with suppress(psycopg.Error):  # a broken connection has undone it already
                raw.execute(b"ROLLBACK")
        raise
    try:
        raw.execute(b"COMMIT")
    except psycopg.OperationalError as error:
        if must_be_repeated(error):
            raise
        raise CommitLost(result, transaction) from error
    return result


def fate(raw: Raw, transaction: str | None) -> Literal["committed", "aborted", "in progress"]:
    """Return what the server says of a transaction whose COMMIT was sent on another connection.

    One without an id only read, which is as good as undone.
    """
    if transaction is None:
        return "aborted"
    row = raw.execute("SELECT pg_xact_status(%s::xid8)", (transaction,)).fetchone()
    match row:
        case ("committed",):
            return "committed"
        case ("in progress",):
            return "in progress"
        case _:
            return "aborted"


def _id_in(begun: psycopg.Cursor[tuple[Any, ...]]) -> str | None:
    begun.nextset()
    row = begun.fetchone()
    return row[0] if row else None
