"""What comes too late changes nothing: a second settlement, a cancel, another decision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes.contract.handler import Answer
from aip_hermes.database import Connection
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.settlement import Ending, LostClaim, settle
from tests.support.runtime_connector import ScriptedRejected
from tests.support.runtime_site import Site, action, approval_request, decision, requester, reviewer

TABLES = ("actions", "events", "audit", "idempotency_keys", "approvals", "serial_locks")
OWNER = requester(scopes=frozenset({"action:read", "action:write"}))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        yield Site(tmp_path)


async def everything(runtime: Runtime) -> dict[str, list[Any]]:
    def read(connection: Connection) -> dict[str, list[Any]]:
        return {table: connection.execute(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608 - our own names

    return await runtime._footing.database.read(read)


@pytest.mark.requirement("runtime:lifecycle:too-late")
@pytest.mark.parametrize("failed", [False, True])
async def test_a_second_settlement_writes_nothing(site: Site, failed: bool) -> None:
    if failed:
        site.connector.failures["send"] = ScriptedRejected("no")
    given = action("session_fork", idempotency_key="K")
    async with site.open() as runtime:
        await site.submit(runtime, given)
        before = await everything(runtime)
        for outcome in (Answer(output={"other": True}), ScriptedRejected("other")):

            def again(connection: Connection, outcome: Any = outcome) -> None:
                settle(
                    connection,
                    tenant="tenant-a",
                    action_id=given.id,
                    attempt=1,
                    ending=Ending(outcome=outcome),
                    now=site.clock.now_ms(),
                )

            with pytest.raises(LostClaim):
                await runtime._footing.database.write(again)
        assert await everything(runtime) == before


@pytest.mark.requirement("runtime:lifecycle:too-late")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_late_cancel_answers_what_there_is_and_changes_nothing(site: Site, end: str) -> None:
    given = action("session_delete", idempotency_key="D")
    async with site.open() as runtime:
        request = approval_request(await site.submit(runtime, given))
        if end == "cancelled":
            await runtime.cancel(given.id, OWNER)
        else:
            chosen = "approved" if end == "completed" else "denied"
            await runtime.decide(decision(request, decision=chosen), reviewer())
        result = await runtime.result(given.id, requester())
        before = await everything(runtime)
        for _ in range(2):
            assert (await runtime.cancel(given.id, OWNER)).wire() == result.wire()
        assert result.status == end
        assert await everything(runtime) == before


@pytest.mark.requirement("runtime:lifecycle:too-late")
@pytest.mark.parametrize("first", ["approved", "denied"])
async def test_another_decision_is_refused_and_changes_nothing(site: Site, first: str) -> None:
    given = action("session_delete", idempotency_key="D")
    async with site.open() as runtime:
        request = approval_request(await site.submit(runtime, given))
        await runtime.decide(decision(request, decision=first), reviewer())
        before = await everything(runtime)
        for other in ("approved", "denied"):
            late = decision(request, decision=other, decision_id="decision:example:2")
            with pytest.raises(RequestRefused) as caught:
                await runtime.decide(late, reviewer())
            assert (caught.value.code, caught.value.details["code"]) == (
                "auth.not_authorized",
                "policy.approval_not_pending",
            )
        assert await everything(runtime) == before
        assert len(site.connector.sends) == (1 if first == "approved" else 0)
