"""What queries answer to whom; message ids; the authority file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.errors import RequestRefused
from aip_hermes.ids import TenantId
from aip_hermes.runtime import Authorities, AuthorityFileError, Caller
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import (
    READING,
    Site,
    action,
    approval_request,
    ask,
    authority,
    caller,
    decision,
    requester,
    reviewer,
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.requirement("runtime:query:status")
async def test_an_action_of_nobody_or_of_another_tenant_is_unknown(site: Site) -> None:
    async with site.open() as runtime:
        given = action("session_chat")
        await site.submit(runtime, given)
        for action_id, by in (
            ("act_nowhere", requester()),
            (given.id, requester(tenant="tenant-b", scopes=frozenset("*"))),
        ):
            status = await runtime.status(action_id, by, include_result=True)
            base = f"/aip/v1/actions/{action_id}"
            assert status.wire() == {
                "action_id": action_id,
                "state": "unknown",
                "updated_at": "2030-01-01T00:00:00Z",
                "links": {
                    "cancel": f"{base}/cancel",
                    "chunks": f"{base}/chunks",
                    "events": f"{base}/events",
                    "result": f"{base}/result",
                    "self": base,
                },
            }
            with pytest.raises(RequestRefused) as refused:
                await runtime.result(action_id, by)
            assert refused.value.code == "action.not_found"


@pytest.mark.requirement("runtime:query:status")
async def test_a_settled_action_shows_its_result_when_asked(site: Site) -> None:
    async with site.open() as runtime:
        given = action("session_chat")
        result = await site.submit(runtime, given)
        status = await runtime.status(given.id, requester(), include_result=True)
        plain = await runtime.status(given.id, requester())
    assert (status.state, status.result_status, status.result) == ("completed", "completed", result)
    assert (status.capability_id, status.completed_at) == (given.capability_id, "2030-01-01T00:00:00Z")
    assert (plain.result, plain.queued_state, plain.approval_id) == (None, None, None)


@pytest.mark.requirement("runtime:query:scopes")
@pytest.mark.parametrize(
    ("by", "allowed"),
    [
        (requester(), True),
        (requester(scopes=frozenset({"action:read:any"})), True),
        (requester(scopes=frozenset()), False),
        (requester(scopes=frozenset({"approval:read"})), False),
        (caller("agent:example:other"), False),
        (caller("human:example:requester"), False),
        (caller("agent:example:other", scopes=frozenset({"action:read", "principal:read:any"})), True),
        (caller("agent:example:other", scopes=frozenset({"action:read:any"})), True),
        (caller("agent:example:other", scopes=frozenset({"*"})), True),
    ],
)
async def test_reading_an_action_needs_a_scope(site: Site, by: Caller, allowed: bool) -> None:
    async with site.open() as runtime:
        given = action("session_chat")
        await site.submit(runtime, given)
        if allowed:
            assert (await runtime.status(given.id, by)).state == "completed"
            assert (await runtime.result(given.id, by)).status == "completed"
            return
        for query in (runtime.status(given.id, by), runtime.result(given.id, by)):
            with pytest.raises(RequestRefused) as refused:
                await query
            assert refused.value.code == "auth.not_authorized"
            assert refused.value.details == {"object": "action", "operation": "Read"}


@pytest.mark.requirement("runtime:query:approvals")
@pytest.mark.parametrize(
    ("by", "sees"),
    [
        (requester(), True),
        (reviewer(), True),
        (caller("agent:example:other"), False),
        (caller("agent:example:other", scopes=frozenset({"approval:read:any"})), True),
        (caller("agent:example:other", scopes=frozenset({"approval:read", "principal:read:any"})), True),
        (requester(scopes=frozenset({"action:read"})), None),
    ],
)
async def test_an_approval_is_seen_by_who_takes_part_or_may_decide(site: Site, by: Caller, sees: bool | None) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        if sees:
            assert (await runtime.approval(request.id, by)).request == request
            assert [view.request.id for view in (await runtime.approvals(by)).approvals] == [request.id]
            return
        with pytest.raises(RequestRefused) as refused:
            await runtime.approval(request.id, by)
        assert refused.value.code == "auth.not_authorized"
        if sees is False:
            assert (await runtime.approvals(by)).approvals == []
        else:
            with pytest.raises(RequestRefused):
                await runtime.approvals(by)


@pytest.mark.requirement("runtime:query:approvals")
@pytest.mark.parametrize("powers", [{"tenant_id": None, "tenant_policies": ()}, {"tenant_id": "tenant-b"}])
async def test_an_authority_that_could_not_decide_sees_nothing(site: Site, powers: dict[str, Any]) -> None:
    bystander = "human:example:bystander"
    site.authorities = (authority(), authority(bystander, **{"tenant_policies": (), **powers}))
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.approval(request.id, caller(bystander))
        assert refused.value.code == "auth.not_authorized"
        assert (await runtime.approvals(caller(bystander))).approvals == []


@pytest.mark.requirement("runtime:query:approvals")
async def test_approvals_come_oldest_first_page_by_page(site: Site) -> None:
    site.connector = ScriptedConnector(operations=("session_delete",))
    async with site.open() as runtime:
        ids = []
        for number in range(5):
            by = caller("agent:example:other") if number == 2 else requester()
            given = action("session_delete", idempotency_key=f"D{number}")
            ids.append(approval_request(await site.submit(runtime, given, by)).id)
            site.clock.advance(1)

        async def pages(by: Caller, **filters: Any) -> list[list[str]]:
            found, cursor = [], None
            while True:
                page = await runtime.approvals(by, limit=2, cursor=cursor, **filters)
                found.append([view.request.id for view in page.approvals])
                if page.cursor is None:
                    return found
                cursor = page.cursor

        assert await pages(reviewer()) == [ids[0:2], ids[2:4], ids[4:]]
        mine = [ids[0], ids[1], ids[3], ids[4]]
        assert await pages(requester()) == [mine[:2], mine[2:]]
        assert await pages(reviewer(), requester="agent:example:other") == [[ids[2]]]
        await runtime.decide(
            decision(approval_request(await site.submit(runtime, given)), decision="denied"), reviewer()
        )
        assert await pages(reviewer(), status="denied") == [[ids[4]]]
        assert await pages(reviewer(), approver="human:example:reviewer") == [[ids[4]]]
        assert await pages(reviewer(), tenant_id=TenantId("tenant-a"), status="expired") == [[]]
        for cursor in ("2", "offset:-1", "offset:x", ""):
            with pytest.raises(RequestRefused) as refused:
                await runtime.approvals(reviewer(), cursor=cursor)
            assert refused.value.code == "query.invalid_cursor"
        with pytest.raises(RequestRefused) as foreign:
            await runtime.approvals(reviewer(), tenant_id=TenantId("tenant-b"))
        assert foreign.value.code == "auth.tenant_mismatch"


@pytest.mark.requirement("runtime:query:approvals", "runtime:query:scopes")
async def test_the_exact_input_is_shown_to_holders_of_both_scopes_only(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        view = await runtime.approval(request.id, reviewer(), include_evidence_payload=True, include_action_status=True)
        plain = await runtime.approval(request.id, reviewer())
        for scopes in (READING, READING | {"approval:export"}, READING | {"approval:sensitive"}):
            with pytest.raises(RequestRefused) as refused:
                await runtime.approval(request.id, reviewer(scopes=scopes), include_evidence_payload=True)
            assert refused.value.code == "auth.not_authorized"
    assert view.evidence_payload is not None
    assert view.evidence_payload.wire() == {
        "action_id": given.id,
        "capability_id": given.capability_id,
        "input_hash": request.evidence[0].hash,
        "input": {"session_id": "s1"},
        "identity": {"tenant": {"id": "tenant-a"}},
    }
    assert view.action_status is not None
    assert (view.action_status.state, view.action_status.approval_id) == ("pending_approval", request.id)
    assert (plain.evidence_payload, plain.action_status) == (None, None)


@pytest.mark.requirement("runtime:store:no-input-kept")
@pytest.mark.parametrize("verdict", ["approved", "denied"])
async def test_an_input_is_kept_while_it_is_parked_and_no_longer(site: Site, verdict: str) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
    (before,) = await site.rows("SELECT parked FROM actions")
    async with site.open() as runtime:
        await runtime.decide(decision(request, decision=verdict), reviewer())
    (after,) = await site.rows("SELECT parked FROM actions")
    assert "s1" in before["parked"]
    assert after["parked"] is None


@pytest.mark.requirement("runtime:message:once")
@pytest.mark.parametrize(
    ("offset_ms", "accepted"), [(0, True), (-300_000, True), (-300_001, False), (30_000, True), (30_001, False)]
)
async def test_a_message_is_claimed_once_within_its_window(site: Site, offset_ms: int, accepted: bool) -> None:
    sent = site.clock.now_ms() + offset_ms
    async with site.open() as runtime:
        if accepted:
            await runtime.claim_message("msg_1", sent, requester())
        with pytest.raises(RequestRefused) as refused:
            await runtime.claim_message("msg_1", sent, reviewer())
        assert refused.value.code == "replay.message_id"
        site.clock.advance(400_000)
        await runtime.claim_message("msg_1", site.clock.now_ms(), requester())


@pytest.mark.requirement("runtime:message:once")
async def test_a_claimed_message_stays_claimed_over_a_restart_to_the_last_moment_of_its_window(site: Site) -> None:
    sent = site.clock.now_ms()
    async with site.open() as runtime:
        await runtime.claim_message("msg_1", sent, requester())
    for later_ms in (0, 300_000, 1):
        site.clock.advance(later_ms)
        async with site.open() as runtime:
            with pytest.raises(RequestRefused) as refused:
                await runtime.claim_message("msg_1", sent, requester())
            assert refused.value.code == "replay.message_id"
            assert ("server_time" in (refused.value.details or {})) == (later_ms == 1)


GOOD = {
    "principal_id": "human:example:reviewer",
    "tenant_id": "tenant-a",
    "roles": [],
    "groups": [],
    "tenant_policies": ["hermes-session-approval"],
    "external_systems": [],
    "delegated_scopes": [],
    "revision": 1,
    "revoked": False,
}
FILES: list[tuple[object, bool]] = [
    ([GOOD], True),
    ([{**GOOD, "expires_at": "2031-01-01T00:00:00Z"}], True),
    ([{**GOOD, "tenant_id": None}], True),
    ([], False),
    ({}, False),
    ([GOOD, GOOD], False),
    ([{**GOOD, "revoked": True}], False),
    ([{**GOOD, "expires_at": "2029-01-01T00:00:00Z"}], False),
    ([{**GOOD, "expires_at": "soon"}], False),
    ([{**GOOD, "revision": 0}], False),
    ([{**GOOD, "admin": True}], False),
    ([{name: value for name, value in GOOD.items() if name != "roles"}], False),
    (["human:example:reviewer"], False),
    ("[", False),
    (json.dumps([GOOD]).replace('"revoked": false', '"revoked": true, "revoked": false'), False),
    (b"\xef\xbb\xbf" + json.dumps([GOOD]).encode(), True),
    (b"[\xff]", False),
]


@pytest.mark.requirement("runtime:authority:file")
@pytest.mark.parametrize(("content", "accepted"), FILES)
def test_an_authority_file_is_accepted_whole_or_refused_by_path(
    tmp_path: Path, content: object, accepted: bool
) -> None:
    path = tmp_path / "authorities.json"
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if accepted:
        loaded = Authorities.load(path, clock=ManualClock())
        assert loaded.resolve("human:example:reviewer", now_ms=ManualClock().now_ms()) is not None
        return
    with pytest.raises(AuthorityFileError, match=r"authorities\.json"):
        Authorities.load(path, clock=ManualClock())


def test_a_missing_authority_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AuthorityFileError, match="nowhere"):
        Authorities.load(tmp_path / "nowhere.json", clock=ManualClock())
