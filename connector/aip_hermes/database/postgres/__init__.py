"""Stores on PostgreSQL (extra `postgres`): the same operations as on SQLite, shared by several workers."""

from aip_hermes.database.postgres.engine import PostgresDatabase

__all__ = ["PostgresDatabase"]
