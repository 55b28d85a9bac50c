"""Durable stores for the runtime and the embedded Hermes: one mechanism, each with its own file and migrations."""

from aip_hermes.database.address import PostgresAddress, postgres_address
from aip_hermes.database.backup import Copied, CopyRefused, back_up
from aip_hermes.database.connection import MISSED, Connection, Listed
from aip_hermes.database.database import Database
from aip_hermes.database.failures import StoreClosed, StoreConflict, StoreFailure, StoreRefused, StoreUnavailable
from aip_hermes.database.mounts import shared_file_system
from aip_hermes.database.owner import AlreadyOwned, OwnerLock
from aip_hermes.database.place import Place, SharedPlace, Store, StoreKind, open_store, store_place
from aip_hermes.database.pool_settings import PoolSettings, pool_settings
from aip_hermes.database.queries import Queries, Query
from aip_hermes.database.restore import Restored, restore
from aip_hermes.database.room import obstacle_at
from aip_hermes.database.untouched import Untouched, open_untouched

__all__ = [
    "MISSED",
    "AlreadyOwned",
    "Connection",
    "Copied",
    "CopyRefused",
    "Database",
    "Listed",
    "OwnerLock",
    "Place",
    "PoolSettings",
    "PostgresAddress",
    "Queries",
    "Query",
    "Restored",
    "SharedPlace",
    "Store",
    "StoreClosed",
    "StoreConflict",
    "StoreFailure",
    "StoreKind",
    "StoreRefused",
    "StoreUnavailable",
    "Untouched",
    "back_up",
    "obstacle_at",
    "open_store",
    "open_untouched",
    "pool_settings",
    "postgres_address",
    "restore",
    "shared_file_system",
    "store_place",
]
