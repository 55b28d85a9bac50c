"""What a fault asks of the turn behind it: to begin with a compression."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request

from aip_hermes.embedded.agent.compressing import Compression
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.faults.exchange import COMPRESSION

__all__ = ["ROTATING", "demanded_compression"]

ROTATING: Final = "rotating"


def demanded_compression(endpoint: Endpoint, request: Request) -> Compression | None:
    """Return what this request's turn begins with; None: nothing. A new row gets `YYYYMMDD_HHMMSS_<6 hex>` (UTC)."""
    how = request.scope.get(COMPRESSION)
    if how is None:
        return None
    if how != ROTATING:
        return Compression()
    moment = time.strftime("%Y%m%d_%H%M%S", time.gmtime(endpoint.clock.now_ms() / 1000))
    return Compression(child_id=f"{moment}_{endpoint.new_id('')[-6:]}")
