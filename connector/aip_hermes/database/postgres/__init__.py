"""Stores on PostgreSQL (extra `postgres`): the same operations as on SQLite, shared by several workers."""

from aip_hermes.database.postgres.address import PostgresAddress, postgres_address
from aip_hermes.database.postgres.engine import PostgresDatabase
from aip_hermes.database.postgres.pool_settings import PoolSettings, pool_settings

__all__ = ["PoolSettings", "PostgresAddress", "PostgresDatabase", "pool_settings", "postgres_address"]
