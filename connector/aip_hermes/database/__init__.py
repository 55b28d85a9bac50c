"""Durable stores for the runtime and the embedded Hermes: one mechanism, each with its own file and migrations."""

from aip_hermes.database.backup import Copied, CopyRefused, back_up
from aip_hermes.database.connection import Connection
from aip_hermes.database.database import Database
from aip_hermes.database.failures import StoreClosed, StoreConflict, StoreFailure, StoreRefused, StoreUnavailable
from aip_hermes.database.mounts import shared_file_system
from aip_hermes.database.owner import AlreadyOwned, OwnerLock
from aip_hermes.database.queries import Queries
from aip_hermes.database.restore import Restored, restore
from aip_hermes.database.untouched import Untouched, open_untouched

__all__ = [
    "AlreadyOwned",
    "Connection",
    "Copied",
    "CopyRefused",
    "Database",
    "OwnerLock",
    "Queries",
    "Restored",
    "StoreClosed",
    "StoreConflict",
    "StoreFailure",
    "StoreRefused",
    "StoreUnavailable",
    "Untouched",
    "back_up",
    "open_untouched",
    "restore",
    "shared_file_system",
]
