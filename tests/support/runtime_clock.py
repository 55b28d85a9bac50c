"""A clock that moves when a test says so: the one of the connector kit."""

from aip_hermes.cli.conformance.clock import ManualClock

__all__ = ["ManualClock"]
