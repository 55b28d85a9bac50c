"""The entry point `hermes_agent` of the group `aip.connectors`."""

from __future__ import annotations

from aip_hermes.contract.handler import Connector
from aip_hermes.hermes import HermesConnector
from aip_hermes.ports import Clock, Faults, NewId
from aip_hermes.settings import Settings

__all__ = ["build"]


def build(
    settings: Settings,
    *,
    clock: Clock,
    new_id: NewId,
    faults: Faults,
) -> Connector:
    """Return the connector for the endpoints of `settings`. Connects to nothing."""
    return HermesConnector(
        settings.endpoints,
        clock=clock,
        faults=faults,
        operator=settings.operator,
        new_id=new_id,
        quiet=settings.reconcile,
    )
