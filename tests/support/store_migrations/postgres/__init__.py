"""The same small schema for PostgreSQL."""
