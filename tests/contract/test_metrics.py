"""What is counted, where it happens, and who may look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from aip_hermes.database import Connection, StoreConflict
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.figures import Load
from aip_hermes.server.metrics import CONTENT_TYPE, PrometheusMeter
from tests.support.runtime_connector import ScriptedOutcomeUnknown
from tests.support.runtime_site import Crash, Site, action, ask, decision, reviewer
from tests.support.server_serving import action as message
from tests.support.server_serving import serving, written_settings
from tests.support.server_site import write_secret
from tests.support.store_copies import add, store

IDLE = Load(queued=0, running=0, pending=0)
OPERATIONS = ("session_create", "session_delete", "session_get", "session_chat")


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """Return (name, label values…) → value, times of creation left out."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def metered(tmp_path: Path) -> tuple[Site, PrometheusMeter]:
    meter = PrometheusMeter(OPERATIONS)
    return Site(tmp_path, meter=meter), meter


async def figures(
    runtime: Runtime, meter: PrometheusMeter, tenant: str | None = None
) -> Mapping[tuple[str, ...], float]:
    return samples(meter.text(tenant, await runtime.load(tenant)))


@pytest.mark.requirement("metrics:counts")
async def test_ends_hits_and_times_are_counted_once_each(tmp_path: Path) -> None:
    site, meter = metered(tmp_path)
    async with site.open() as runtime:
        created = action(idempotency_key="K")
        await site.submit(runtime, created)
        await site.submit(runtime, created)
        await site.submit(runtime, action(idempotency_key="K"))
        await site.submit(runtime, action("session_get"))
        site.connector.failures["send"] = ScriptedOutcomeUnknown("lost", uncertain=True)
        await site.submit(runtime, action(idempotency_key="L", input={"body": {"id": "s2"}}))
        found = await figures(runtime, meter)
    assert found["aip_actions_total", "session_create", "completed"] == 1
    assert found["aip_actions_total", "session_create", "failed"] == 1
    assert found["aip_actions_total", "session_get", "completed"] == 1
    assert found["aip_actions_uncertain_total", "session_create"] == 1
    assert found["aip_fence_hits_total", "replayed", "session_create"] == 2
    assert found["aip_provider_seconds_count", "session_create"] == 2
    assert found["aip_provider_seconds_count", "session_get"] == 1


@pytest.mark.requirement("metrics:counts")
async def test_refusals_of_the_fence_are_hits_too(tmp_path: Path) -> None:
    site, meter = metered(tmp_path)
    async with site.open() as runtime:
        first = action(idempotency_key="K")
        await site.submit(runtime, first)
        with pytest.raises(RequestRefused) as refused:
            await site.submit(runtime, action(id=first.id, input={"body": {"id": "other"}}, idempotency_key="K"))
        assert refused.value.code == "action.id_conflict"
        found = await figures(runtime, meter)
    assert found["aip_fence_hits_total", "refused", "session_create"] == 1


@pytest.mark.requirement("metrics:counts")
async def test_what_waits_is_read_from_the_store_and_a_decision_is_an_end(tmp_path: Path) -> None:
    site, meter = metered(tmp_path)
    async with site.open() as runtime:
        _, denied = await ask(site, runtime)
        _, approved = await ask(site, runtime, idempotency_key="E", input={"session_id": "s2"})
        assert (await figures(runtime, meter))["aip_approvals_pending",] == 2
        await runtime.decide(decision(denied, decision="denied"), reviewer())
        await runtime.decide(decision(approved, decision_id="decision:example:2"), reviewer())
        found = await figures(runtime, meter)
    assert found["aip_approvals_pending",] == 0
    assert found["aip_queue_depth",] == 0
    ended = {key: value for key, value in found.items() if key[0] == "aip_actions_total"}
    assert sum(ended.values()) == 2
    assert ended["aip_actions_total", "session_delete", "completed"] == 1


@pytest.mark.requirement("metrics:counts")
async def test_an_outcome_that_a_crash_made_unknown_is_counted_by_the_next_start(tmp_path: Path) -> None:
    site, _ = metered(tmp_path)
    site.faults.point = "after_answer"
    async with site.open() as runtime:
        with pytest.raises(Crash):
            await site.submit(runtime, action(idempotency_key="K"))
    site.meter = after = PrometheusMeter(OPERATIONS)
    async with site.open() as runtime:
        found = await figures(runtime, after)
    assert found["aip_actions_uncertain_total", "session_create"] == 1


@pytest.mark.requirement("metrics:tenants-apart")
def test_a_tenants_figures_are_those_of_a_server_that_it_has_alone() -> None:
    shared, alone = PrometheusMeter(OPERATIONS), PrometheusMeter(OPERATIONS)
    for meter, tenants in ((shared, ("a", "b", "")), (alone, ("a",))):
        for tenant in tenants:
            meter.ended(tenant=tenant, operation="session_get", status="completed", uncertain=False)
            meter.fence_hit(tenant=tenant, operation="session_chat", kind="waited")
            meter.provider_took(tenant=tenant, operation="session_get", seconds=0.5)
    mine = samples(shared.text("a", IDLE))
    assert mine == samples(alone.text("a", IDLE))
    assert samples(shared.text(None, IDLE))["aip_actions_total", "session_get", "completed"] == 3
    assert samples(shared.text("nobody", IDLE)) == samples(PrometheusMeter(OPERATIONS).text("x", IDLE))


@pytest.mark.requirement("metrics:closed-sets")
def test_a_name_that_a_caller_made_up_is_other() -> None:
    meter = PrometheusMeter(OPERATIONS)
    for number in range(50):
        meter.ended(tenant="a", operation=f"MARK-{number}", status=f"MARK-{number}", uncertain=True)
        meter.fence_hit(tenant="a", operation=f"MARK-{number}", kind="replayed")
        meter.provider_took(tenant="a", operation=f"MARK-{number}", seconds=1)
    for tenant in (None, "a"):
        text = meter.text(tenant, IDLE)
        assert b"MARK" not in text
        assert samples(text)["aip_actions_total", "other", "other"] == 50


@pytest.mark.requirement("metrics:token")
async def test_the_route_needs_a_token_with_the_scope(tmp_path: Path) -> None:
    tokens = ""
    for name, tenant, scope in (("one", 'tenant = "local"\n', "metrics:read"), ("all", "", "metrics:read:any")):
        write_secret(tmp_path / "tokens" / name, f"{name}-0123456789abcdef")
        tokens += f'[[tokens]]\nfile = "tokens/{name}"\nprincipal = "service:{name}"\n{tenant}scopes = ["{scope}"]\n'
    settings = written_settings(tmp_path, extra=f"\n{tokens}")
    async with serving(settings) as (client, _):
        await client.post("/aip/v1/messages", json=message("act_1"))
        nobody = await client.get("/metrics", headers={"authorization": ""})
        unscoped = await client.get("/metrics")
        seen = {who: await _scrape(client, who) for who in ("one", "all")}
    assert [answer.status_code for answer in (nobody, unscoped)] == [401, 401]
    assert json.loads(unscoped.content)["body"]["error"]["error"]["code"] == "auth.not_authorized"
    for answer in seen.values():
        assert (answer.status_code, answer.headers["content-type"]) == (200, CONTENT_TYPE)
        assert samples(answer.content)["aip_actions_total", "session_get", "failed"] == 1
        assert b"local" not in answer.content
        assert b"primary" not in answer.content


async def _scrape(client: httpx.AsyncClient, who: str) -> httpx.Response:
    return await client.get("/metrics", headers={"authorization": f"Bearer {who}-0123456789abcdef"})


@pytest.mark.requirement("database:note:committed-only")
async def test_a_note_is_told_for_what_was_committed_only(tmp_path: Path) -> None:
    told: list[tuple[str, object]] = []

    def listen(note: tuple[str, Mapping[str, object]]) -> None:
        told.append((note[0], note[1]["name"]))
        raise RuntimeError("a listener of no use")

    def noting(name: str) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            connection.note("added", name=name)
            add(name)(connection)

        return work

    async with store(tmp_path / "store.db", committed=listen) as db:
        await db.write(noting("a"))
        assert told == [("added", "a")]
        names = ("b", "a", "c")
        results = await asyncio.gather(*(db.write(noting(name)) for name in names), return_exceptions=True)
        assert [isinstance(result, Exception) for result in results] == [False, True, False]
        with pytest.raises(StoreConflict):
            await db.write(noting("a"))
    assert told == [("added", "a"), ("added", "b"), ("added", "c")]
