"""What a network and a busy store do to a client, on demand."""

from __future__ import annotations

from aip_hermes.embedded.faults.plan import FAULTS, FaultPlan

__all__ = ["FAULTS", "FaultPlan"]
