"""What every test gets."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.support.postgres import _every_store_is_shared, postgres_dsn, postgres_server

__all__ = ["_every_store_is_shared", "postgres_dsn", "postgres_server", "quiet_log"]

# The same examples every time, whatever the machine does meanwhile: a failure says something about the code.
# `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("same"), derandomize=False, max_examples=1_000)
settings.load_profile("same")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background lets it ignore Ctrl-C, and every process that it starts, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """Keep log events as values. The console rendering of an unconfigured log takes a second per traceback."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[structlog.processors.add_log_level])
    yield
    structlog.reset_defaults()
