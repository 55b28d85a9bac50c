"""Durable stores for the runtime and the embedded Hermes: one mechanism, each with its own file and migrations."""

from aip_hermes.database.connection import Connection
from aip_hermes.database.database import Database
from aip_hermes.database.failures import StoreClosed, StoreConflict, StoreFailure, StoreRefused, StoreUnavailable
from aip_hermes.database.owner import AlreadyOwned, OwnerLock
from aip_hermes.database.queries import Queries

__all__ = [
    "AlreadyOwned",
    "Connection",
    "Database",
    "OwnerLock",
    "Queries",
    "StoreClosed",
    "StoreConflict",
    "StoreFailure",
    "StoreRefused",
    "StoreUnavailable",
]
