"""A runtime before a real hermes-agent, which is also asked directly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aip_hermes import wire
from aip_hermes.contract import load_operations
from aip_hermes.contract.schemas import operation_validator
from tests.real.gateway import RealHermes
from tests.real.rows import RealRows, real_rows
from tests.support.reconcile_site import Losing, losing

__all__ = ["OPERATIONS", "Site", "real_site"]

OPERATIONS = load_operations()
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, kw_only=True)
class Site:
    """done: which operations completed."""

    hermes: RealHermes
    rows: RealRows
    losing: Losing
    done: set[str] = field(default_factory=set)

    def named(self, name: str) -> str:
        return f"{name}-{self.rows.mark}"

    async def act(self, operation: str, values: Mapping[str, Any]) -> wire.ActionResult:
        """Have an operation done, with an approval where its row asks for one."""
        assert operation_validator(OPERATIONS[operation].input).violations(values) == []
        return await self.losing.act(operation, values, approve=OPERATIONS[operation].approval is not None)

    async def output(self, operation: str, **values: Any) -> dict[str, Any]:
        """Return what an operation answers that completes, as its published schema says."""
        result = await self.act(operation, values)
        assert result.status == "completed", result.wire()
        assert operation_validator(OPERATIONS[operation].output).violations(result.output) == []
        self.done.add(operation)
        assert isinstance(result.output, dict)
        return result.output

    async def reached(self, run_id: str, status: str) -> None:
        """Wait for a status of a run that stays."""
        async with asyncio.timeout(30):
            while (run := (await self.rows.client.get(f"/v1/runs/{run_id}")).json())["status"] != status:
                assert run["status"] not in ENDED, run


@asynccontextmanager
async def real_site(hermes: RealHermes, folder: Path) -> AsyncIterator[Site]:
    """Yield both."""
    async with real_rows(hermes) as rows, losing(folder, hermes.url, key=hermes.key, within_s=240) as runtime:
        yield Site(hermes=hermes, rows=rows, losing=runtime)
