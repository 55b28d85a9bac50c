"""Applications that are killed around a call, that share a file of identities, or whose disk is full."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import SqliteIdentityStore
from tests.support.app_calls import application, tell
from tests.support.client_site import ClientSite, client_site
from tests.support.embedded_endpoint import GatedModel

CREATE = {"operation": "session_create", "input": {"body": {"id": "case", "title": "A case"}}}
CHAT = {"operation": "session_chat", "input": {"session_id": "case", "message": "What is verified?"}}


@pytest.fixture
async def model() -> GatedModel:
    return GatedModel()


@pytest.fixture
async def site(tmp_path: Path, model: GatedModel) -> AsyncIterator[ClientSite]:
    async with client_site(tmp_path, model=model) as running:
        yield running


def order(site: ClientSite, *calls: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "url": site.url,
        "token_file": str(site.folder / "tokens" / "requester"),
        "ids": str(site.folder / "ids.db"),
        "calls": list(calls),
        **members,
    }


async def rows_of(site: ClientSite) -> list[str]:
    answer = await site.endpoint.client.get("/api/sessions")
    return [row["id"] for row in answer.json()["data"]]


@pytest.mark.requirement("app:identities:kept-first", "app:resume:asks", "app:resume:same-submission")
async def test_a_kill_between_keeping_and_sending_leaves_a_call_that_never_arrived(site: ClientSite) -> None:
    async with application(order(site, CREATE, die_at="client_identities_kept")) as process:
        assert await process.wait() == -signal.SIGKILL
    assert await rows_of(site) == []
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        [record] = await aip.open_calls()
        assert (record.new_session_id, record.endpoint, record.state) == ("case", "primary", "open")
        assert record.idempotency_key is not None
        assert (await aip.resume(record)).state == "never_received"
        resumed = await aip.resume(record, input=CREATE["input"])
        assert resumed.result is not None
        assert resumed.result.completed()["session"]["id"] == "case"
        assert await aip.open_calls() == []
    assert await rows_of(site) == ["case"]


@pytest.mark.requirement("app:identities:kept-first", "app:resume:asks")
async def test_a_kill_between_sending_and_the_answer_leaves_a_call_that_runs_once(
    site: ClientSite, model: GatedModel
) -> None:
    await site.endpoint.create("case")
    async with application(order(site, CHAT)) as process:
        async with asyncio.timeout(60):
            await model.asked.wait()
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        [record] = await aip.open_calls()
        assert (await aip.resume(record, input=CHAT["input"])).state == "running"
        model.gate.set()
        result = await aip.wait(record.action_id, timeout_s=60)
        assert result.completed()["message"]["content"] == "Reply 1"
        assert await aip.open_calls() == []
    _, messages = await site.endpoint.messages("case")
    assert (len(messages), len(model.requests)) == (2, 1)


@pytest.mark.requirement("app:identities:kept-first", "app:resume:asks")
async def test_a_kill_between_the_answer_and_keeping_it_loses_no_answer(site: ClientSite, model: GatedModel) -> None:
    model.gate.set()
    async with application(order(site, CREATE, die_at="client_answered")) as process:
        assert await process.wait() == -signal.SIGKILL
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        [record] = await aip.open_calls()
        resumed = await aip.resume(record, input=CREATE["input"])
        assert (resumed.state, resumed.record.state, resumed.record.attempts) == ("settled", "settled", 1)
    assert await rows_of(site) == ["case"]


@pytest.mark.requirement("app:identities:shared-file")
async def test_two_processes_share_one_file(site: ClientSite) -> None:
    def creates(who: str) -> dict[str, Any]:
        names = [f"{who}{number}" for number in range(8)]
        made = [{"operation": "session_create", "input": {"body": {"id": name}}} for name in names]
        clash = {"operation": "session_create", "input": {"body": {"id": f"clash-{who}"}}, "action_id": "act_same"}
        return order(site, *made, clash)

    async with application(creates("a")) as one, application(creates("b")) as other:
        told = [await tell(process) for _ in range(9) for process in (one, other)]
    completed = [each["action_id"] for each in told if each.get("outcome") == "completed"]
    assert sorted(each["failed"] for each in told if "failed" in each) == ["client.identity_clash"]
    assert (len(completed), len(set(completed))) == (17, 17)
    assert len(await rows_of(site)) == 17
    async with SqliteIdentityStore(site.folder / "ids.db") as store:
        records = [await store.call(action_id) for action_id in completed]
        assert await store.open_calls() == []
    assert [record.state for record in records if record is not None] == ["settled"] * 17


@pytest.mark.requirement("app:identities:no-store-no-send")
async def test_a_full_disk_stops_the_call_before_anything_is_sent(site: ClientSite) -> None:
    second = {"operation": "session_create", "input": {"body": {"id": "unsent"}}}

    async with application(order(site, CREATE, second, fill=1)) as process:
        first, refused = [await tell(process), await tell(process)]
    assert (first["outcome"], refused["failed"]) == ("completed", "client.identity_store")
    assert await rows_of(site) == ["case"]
