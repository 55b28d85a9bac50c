"""The connector: AIP actions as requests to a Hermes Agent API server, answered with what they proved."""

from __future__ import annotations

from aip_hermes.hermes.connector import HermesConnector
from aip_hermes.hermes.endpoint import Endpoint, EndpointInvalid

__all__ = ["Endpoint", "EndpointInvalid", "HermesConnector"]
