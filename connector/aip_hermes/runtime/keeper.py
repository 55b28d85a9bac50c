"""Erases text whose time has come, also where nobody asks for it (design D23)."""

from __future__ import annotations

from typing import Final

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.retention import AT_ONCE, erase_expired

__all__ = ["LOOK_S", "Keeper"]

log = structlog.get_logger(__name__)

LOOK_S: Final = 60.0
"""How long text may outlive its time where nobody asks for it."""


class Keeper:
    """Looks once a minute. `run` ends by cancellation."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing

    async def run(self) -> None:
        while True:
            try:
                await self._erase()
            except StoreFailure as exc:
                log.warning("retention.store_failed", error_type=type(exc).__name__)
            await self._footing.clock.sleep(LOOK_S)

    async def _erase(self) -> None:
        """Erase a portion at a time, so that others write in between."""
        keep_ms, total, erased = self._footing.limits.transcripts_ms, 0, AT_ONCE
        while erased == AT_ONCE:
            erased = await self._footing.database.write(
                lambda connection: erase_expired(connection, now=self._footing.now_ms(), keep_ms=keep_ms)
            )
            total += erased
        if total:
            log.info("retention.text_erased", actions=total)
