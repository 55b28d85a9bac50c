"""Methods that account what sessions used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import structlog

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import usage
from aip_hermes.embedded.session_db.store_file import StoreFile
from aip_hermes.embedded.session_db.usage import Report
from aip_hermes.embedded.session_db.usage_queue import UsageQueue

__all__ = ["UsageMethods"]

log = structlog.get_logger(__name__)

_CLOSING_S: Final = 10.0


class UsageMethods(StoreFile):
    """Tokens and costs, as the members of `usage.Report` hold them.

    What is no possible count or cost counts as none. Counters are of 64 bits.
    """

    @cached_property
    def _reports(self) -> UsageQueue:
        return UsageQueue(self._account)

    async def close(self) -> None:
        """Store the queued usage, finish what waits and close; any number of times."""
        if not self._closed and not await self._reports.flush(timeout_s=_CLOSING_S):
            log.warning("session_db.usage_lost", reports=len(self._reports))
        await super().close()

    async def update_token_counts(
        self,
        session_id: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        model: str | None = None,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
        estimated_cost_usd: float | None = None,
        actual_cost_usd: float | None = None,
        cost_status: str | None = None,
        cost_source: str | None = None,
        pricing_version: str | None = None,
        billing_provider: str | None = None,
        billing_base_url: str | None = None,
        billing_mode: str | None = None,
        api_call_count: int = 0,
        absolute: bool = False,
    ) -> None:
        """Add what a call used to the row and to the sums by model; a missing row is made with the source `unknown`.

        A row that was removed is not made again: what comes late for it is dropped.

        absolute=True: the given sums, api_call_count included, take the place of those on the row; costs that are not
        given stay. The first accounted call fixes model and billing route, later ones fill what is unknown.
        """
        report = Report(
            session_id=session_id,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            model=model,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            reasoning_tokens=reasoning_tokens,
            estimated_cost_usd=estimated_cost_usd,
            actual_cost_usd=actual_cost_usd,
            cost_status=cost_status,
            cost_source=cost_source,
            pricing_version=pricing_version,
            billing_provider=billing_provider,
            billing_base_url=billing_base_url,
            billing_mode=billing_mode,
            api_call_count=api_call_count,
            absolute=absolute,
        )
        await self._account([report])

    async def queue_token_counts(
        self,
        session_id: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        model: str | None = None,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
        estimated_cost_usd: float | None = None,
        actual_cost_usd: float | None = None,
        cost_status: str | None = None,
        cost_source: str | None = None,
        pricing_version: str | None = None,
        billing_provider: str | None = None,
        billing_base_url: str | None = None,
        billing_mode: str | None = None,
        api_call_count: int = 0,
        absolute: bool = False,
    ) -> None:
        """The same, soon: returns at once, and a task of the store writes several reports together.

        What waits is stored before a listing and when the store closes.
        """
        self._check_open()
        report = Report(
            session_id=session_id,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            model=model,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            reasoning_tokens=reasoning_tokens,
            estimated_cost_usd=estimated_cost_usd,
            actual_cost_usd=actual_cost_usd,
            cost_status=cost_status,
            cost_source=cost_source,
            pricing_version=pricing_version,
            billing_provider=billing_provider,
            billing_base_url=billing_base_url,
            billing_mode=billing_mode,
            api_call_count=api_call_count,
            absolute=absolute,
        )
        self._reports.put(report)

    async def flush_token_counts(self, timeout: float = 5.0) -> bool:
        """Wait until all queued usage is stored; False where it is not after so many seconds."""
        self._check_open()
        return await self._reports.flush(timeout_s=timeout)

    async def record_auxiliary_usage(
        self, session_id: str, task: str, *, model: str | None = None, api_call_count: int = 1, **used: Any
    ) -> None:
        """Add what a side task (a title, a summary) used to the sums by model alone; the row's own sums stay.

        used: other members of `usage.Report`.
        """
        now = self._now()
        report = Report(session_id=session_id, model=model, api_call_count=api_call_count, **used)
        await self.write(lambda c: usage.account_auxiliary(c, report, task=task, now=now))

    async def get_model_usage(self, session_id: str) -> list[dict[str, Any]]:
        """Return the sums by model, billing route and task ('' is the conversation), the first used one first."""
        return await self.read(lambda c: usage.by_model(c, session_id))

    async def _account(self, reports: Sequence[Report]) -> None:
        now = self._now()

        def together(connection: Connection) -> None:
            for report in reports:
                usage.account(connection, report, now=now)

        await self.write(together)
