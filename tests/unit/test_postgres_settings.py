"""What may be set of a PostgreSQL store, and where it may be."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.database import PoolSettings, pool_settings, postgres_address

pytestmark = pytest.mark.requirement("database:postgres:settings")


def test_every_setting_is_taken_and_the_limit_is_their_sum() -> None:
    given: dict[str, Any] = {
        "pool_size": 2,
        "max_overflow": 3,
        "pool_timeout": 1.5,
        "pool_recycle": -1,
        "pool_pre_ping": False,
        "pool_use_lifo": False,
        "connect_args": {
            "connect_timeout": 3,
            "prepare_threshold": None,
            "application_name": "worker",
            "options": "-c statement_timeout=60000",
        },
    }
    found = pool_settings(given)
    assert (found.limit, found.pool_timeout, found.connect.prepare_threshold) == (5, 1.5, None)
    assert pool_settings({}) == PoolSettings()
    assert pool_settings({"max_overflow": -1}).limit is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": 1}, "database.postgres.size is unknown"),
        ({"pool_size": -1}, "pool_size is a whole number, 0 or more"),
        ({"pool_size": True}, "pool_size is a whole number"),
        ({"pool_size": 1.0}, "pool_size is a whole number"),
        ({"max_overflow": -2}, "max_overflow is a whole number, -1 or more"),
        ({"pool_timeout": float("nan")}, "pool_timeout is a number of seconds"),
        ({"pool_timeout": float("inf")}, "pool_timeout is a number of seconds"),
        ({"pool_recycle": -2}, "or -1 for never"),
        ({"pool_pre_ping": 1}, "true or false"),
        ({"pool_use_lifo": True}, "cannot be honoured"),
        ({"pool_size": 0, "max_overflow": 0}, "no connection at all"),
        ({"connect_args": []}, "connect_args is a table"),
        ({"connect_args": {"sslmode": "off"}}, "connect_args.sslmode is unknown"),
        ({"connect_args": {"connect_timeout": 0}}, "connect_timeout is a whole number, 1 or more"),
        ({"connect_args": {"prepare_threshold": -1}}, "prepare_threshold is a whole number"),
        ({"connect_args": {"options": 5}}, "options is a text"),
    ],
)
def test_what_is_wrong_or_cannot_be_honoured_is_refused_by_its_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pool_settings(given)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+psycopg://u:secret@db.example:5433/shop", "db.example:5433/shop"),
        ("postgresql://u@localhost/shop", "localhost/shop"),
        ("postgres://u@/shop?host=/run/pg", "/run/pg/shop"),
    ],
)
def test_addresses_are_named_without_their_secrets(text: str, shown: str) -> None:
    found = postgres_address(text)
    assert found is not None
    assert found.shown == shown
    assert "secret" not in repr(found)


def test_a_path_is_no_address() -> None:
    assert [postgres_address(text) for text in ("./state.db", "/var/lib/s.db", "postgresql.db")] == [None] * 3


@pytest.mark.parametrize(
    "text",
    [
        "mysql://u:secret@h/d",
        "postgresql://u:secret@h",
        "postgresql://u:secret@/d",
        "postgresql://u:secret@h:99999/d",
        "postgresql+asyncpg://u:secret@h/d",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(ValueError, match="postgresql://") as refused:
        postgres_address(text)
    assert "secret" not in str(refused.value)
