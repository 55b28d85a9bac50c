"""What every test gets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """Keep log events as values. The console rendering of an unconfigured log takes a second per traceback."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[structlog.processors.add_log_level])
    yield
    structlog.reset_defaults()
