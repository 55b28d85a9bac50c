"""A log that can't be written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import structlog

from aip_hermes.log import configure

FULL = Path("/dev/full")


@pytest.mark.requirement("log:unwritable:stops-nothing")
@pytest.mark.skipif(not FULL.exists(), reason="the kernel has no device that is always full")
def test_a_full_disk_costs_the_event_and_not_the_work() -> None:
    stream = io.TextIOWrapper(FULL.open("wb", buffering=0), write_through=True)
    with pytest.raises(OSError, match="No space left"):
        stream.write("x")
    configure(stream=stream)
    structlog.get_logger("work").warning("work.done", number=1)
    stream.close()


@pytest.mark.requirement("log:unwritable:stops-nothing")
def test_a_closed_stream_costs_the_event_and_not_the_work() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    structlog.get_logger("work").warning("work.done", number=1)
    assert "work.done" in stream.getvalue()
    stream.close()
    structlog.get_logger("work").warning("work.done", number=2)
