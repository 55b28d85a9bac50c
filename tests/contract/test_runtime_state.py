"""What connectors keep about their calls: compared and set, durable, apart from each other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aip_hermes.contract.handler import Answer, Call, State
from aip_hermes.database import Database
from aip_hermes.errors import ActionFailed
from aip_hermes.ports import NoFaults, SystemClock, new_id
from aip_hermes.runtime import RuntimeLimits
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.state import MAX_KEY, ConnectorState
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from tests.support.runtime_site import Crash, Site, action


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Footing]:
    database = Database(folder / "runtime.sqlite3", migrations=MIGRATIONS, application_id=APPLICATION_ID)
    async with database:
        yield Footing(database=database, clock=SystemClock(), new_id=new_id, faults=NoFaults(), limits=RuntimeLimits())


def state_of(footing: Footing, connector: str = "one", tenant: str = "tenant-a") -> ConnectorState:
    return ConnectorState(footing, connector_id=connector, tenant=tenant)


@pytest.mark.requirement("runtime:state:compare-and-set")
async def test_a_value_is_replaced_only_where_its_version_stands(tmp_path: Path) -> None:
    async with opened(tmp_path) as footing:
        state = state_of(footing)
        assert await state.read("run") is None
        assert await state.compare_and_set("run", expected=1, value={"lost": True}) is None
        assert await state.compare_and_set("run", expected=None, value={"id": "r1"}) == 1
        assert await state.compare_and_set("run", expected=None, value={"id": "r2"}) is None
        assert await state.compare_and_set("run", expected=1, value={"id": "r1", "seen": 3}) == 2
        assert await state.compare_and_set("run", expected=1, value={"id": "r1", "seen": 4}) is None
        assert await state.read("run") == ({"id": "r1", "seen": 3}, 2)


@pytest.mark.requirement("runtime:state:compare-and-set")
async def test_of_many_that_bind_at_once_one_succeeds(tmp_path: Path) -> None:
    async with opened(tmp_path) as footing:
        first = await asyncio.gather(
            *(state_of(footing).compare_and_set("run", expected=None, value={"by": n}) for n in range(20))
        )
        assert sorted(filter(None, first)) == [1]
        kept = await state_of(footing).read("run")
        assert kept == ({"by": first.index(1)}, 1)

        async def count_up() -> None:
            while True:
                read = await state_of(footing).read("run")
                assert read is not None
                value, version = read
                counted = {"count": value.get("count", 0) + 1}
                if await state_of(footing).compare_and_set("run", expected=version, value=counted):
                    return

        await asyncio.gather(*(count_up() for _ in range(10)))
        assert await state_of(footing).read("run") == ({"count": 10}, 11)


@pytest.mark.requirement("runtime:state:apart")
async def test_connectors_and_tenants_have_their_own_keys(tmp_path: Path) -> None:
    async with opened(tmp_path) as footing:
        owners = [("one", "tenant-a"), ("two", "tenant-a"), ("one", "tenant-b"), ("one", "")]
        for number, owner in enumerate(owners):
            assert await state_of(footing, *owner).compare_and_set("run", expected=None, value={"n": number}) == 1
        for number, owner in enumerate(owners):
            assert await state_of(footing, *owner).read("run") == ({"n": number}, 1)


@pytest.mark.requirement("runtime:state:apart")
@pytest.mark.parametrize(
    ("key", "fits"), [("k", True), ("ü" * MAX_KEY, True), ("", False), ("k" * 1025, False), ("a\0b", False)]
)
async def test_a_key_has_a_length_and_no_nul(tmp_path: Path, key: str, fits: bool) -> None:
    async with opened(tmp_path) as footing:
        if fits:
            assert await state_of(footing).compare_and_set(key, expected=None, value={}) == 1
            assert await state_of(footing).read(key) == ({}, 1)
        else:
            with pytest.raises(ValueError, match="characters"):
                await state_of(footing).read(key)
            with pytest.raises(ValueError, match="characters"):
                await state_of(footing).compare_and_set(key, expected=None, value={})


@pytest.mark.requirement("runtime:state:store-away")
async def test_a_store_that_is_away_is_a_certain_failure_that_may_be_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as footing:
        state = state_of(footing)
        await state.compare_and_set("run", expected=None, value={"id": "r1"})
        with sqlite3.connect(tmp_path / "runtime.sqlite3") as raw:
            raw.execute("ALTER TABLE connector_state RENAME TO elsewhere")
        raw.close()
        for trying in (state.read("run"), state.compare_and_set("run", expected=1, value={})):
            with pytest.raises(ActionFailed) as caught:
                await trying
            failure = caught.value
            assert (failure.code, failure.uncertain, failure.retryable) == ("runtime.state_unavailable", False, True)


@pytest.mark.requirement("runtime:state:durable")
async def test_what_a_handler_kept_survives_its_process_and_is_there_for_the_next_action(tmp_path: Path) -> None:
    site = Site(tmp_path)
    found: list[object] = []

    async def bind(call: Call, state: State) -> Answer:
        found.append(await state.read("run:r1"))
        version = await state.compare_and_set("run:r1", expected=None, value={"action": str(call.action_id)})
        return Answer(output={"version": version})

    site.connector.keeping = bind
    first, second = action("session_chat"), action("session_chat")
    site.faults.point = "after_answer"
    async with site.open() as runtime:
        with pytest.raises(Crash):
            await site.submit(runtime, first)
    async with site.open() as runtime:
        result = await site.submit(runtime, second)
    assert result.output == {"version": None}
    assert found == [None, ({"action": first.id}, 1)]
    (row,) = await site.rows("SELECT connector_id, tenant, state_key FROM connector_state")
    assert row == {"connector_id": "scripted", "tenant": "tenant-a", "state_key": "run:r1"}
