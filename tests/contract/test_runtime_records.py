"""What was recorded, and to whom it is shown: lists of actions, the log, receipts, the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.client import chain_problems
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import ActionId, CapabilityId, EndpointId, PrincipalId, ReceiptId
from aip_hermes.runtime import Caller, Runtime
from aip_hermes.runtime.records import ActionsAsked, AuditAsked
from tests.support.runtime_connector import ScriptedOutcomeUnknown, ScriptedRejected, capability
from tests.support.runtime_site import Site, action, ask, caller, decision, requester, reviewer

MINE = frozenset({"action:read", "action:write", "approval:read", "events:read", "receipt:read", "audit:read"})
ALL = frozenset({"*"})
OTHER = "agent:example:other"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.connector.endpoints = ("primary", "prim_ry")
    return made


def me(**changes: Any) -> Caller:
    return requester(**{"scopes": MINE, **changes})


def operator(**changes: Any) -> Caller:
    return caller(**{"principal": "human:example:operator", "scopes": ALL, **changes})


def turn_of(session_id: str, **members: Any) -> wire.Action:
    return action("session_chat", input={"session_id": session_id, "message": "hi"}, **members)


async def several(site: Site, runtime: Runtime) -> dict[str, wire.Action]:
    """Run a turn, one that fails, one whose end is unknown, a delete that waits, one of another principal's."""
    made = {name: turn_of(name) for name in ("turn", "failed", "unknown", "elsewhere", "foreign")}
    made["elsewhere"] = turn_of("elsewhere", capability_id=capability("session_chat", "prim_ry"))
    await site.submit(runtime, made["turn"], me())
    for name, failure in (("failed", ScriptedRejected("no")), ("unknown", ScriptedOutcomeUnknown("?", uncertain=True))):
        site.clock.advance(1000)
        site.connector.failures["send"] = failure
        await site.submit(runtime, made[name], me())
    site.connector.failures.clear()
    for name, by in (("elsewhere", me()), ("foreign", caller(OTHER, scopes=MINE))):
        site.clock.advance(1000)
        await site.submit(runtime, made[name], by)
    site.clock.advance(1000)
    made["waiting"], _ = await ask(site, runtime)
    return made


def names_of(found: wire.ActionList, made: dict[str, wire.Action]) -> list[str]:
    ids = {given.id: name for name, given in made.items()}
    return [ids[status.action_id] for status in found.actions]


START = 1_893_456_000_000
MINE_IN_ORDER = ["turn", "failed", "unknown", "elsewhere", "waiting"]


@pytest.mark.requirement("records:list:filters")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, MINE_IN_ORDER),
        ({"state": "completed"}, ["turn", "elsewhere"]),
        ({"state": "failed"}, ["failed", "unknown"]),
        ({"state": "dead_lettered"}, []),
        ({"state": "pending_approval"}, ["waiting"]),
        ({"uncertain": True}, ["unknown"]),
        ({"uncertain": False, "state": "failed"}, ["failed"]),
        ({"capability_id": CapabilityId(capability("session_delete"))}, ["waiting"]),
        ({"endpoint_id": EndpointId("prim_ry")}, ["elsewhere"]),
        ({"endpoint_id": EndpointId("primary")}, ["turn", "failed", "unknown", "waiting"]),
        ({"since": START + 1000, "until": START + 2000}, ["failed", "unknown"]),
        ({"since": START + 9000}, []),
    ],
    ids=repr,
)
async def test_a_list_has_what_was_asked_for_in_order(site: Site, asked: dict[str, Any], expected: list[str]) -> None:
    async with site.open() as runtime:
        made = await several(site, runtime)
        found = await runtime.records.actions(me(), ActionsAsked(**asked))
        assert (names_of(found, made), found.total_size, found.cursor) == (expected, len(expected), None)
        assert wire.schema_violations("action_list", found.wire()) == []


@pytest.mark.requirement("records:list:filters")
async def test_pages_of_a_list_give_each_action_once(site: Site) -> None:
    async with site.open() as runtime:
        made = await several(site, runtime)
        seen: list[str] = []
        cursor: str | None = None
        for expected in ("offset:2", "offset:4", None):
            page = await runtime.records.actions(me(), ActionsAsked(limit=2, cursor=cursor))
            seen += names_of(page, made)
            cursor = page.cursor
            assert (cursor, page.total_size) == (expected, 5)
        shown = await runtime.records.actions(me(), ActionsAsked(include_results=True, include_receipts=True))
    assert seen == MINE_IN_ORDER
    assert shown.actions[0].result is not None
    assert shown.actions[-1].receipt_chain is not None
    assert shown.actions[0].receipt_chain is None


@pytest.mark.requirement("records:list:bounded")
async def test_a_page_of_long_results_ends_early_and_loses_none(site: Site) -> None:
    async def long(_: Call) -> Answer:
        return Answer(output={"text": "x" * 1_500_000})

    site.connector.send = long
    pages: list[list[str]] = []
    cursor: str | None = None
    async with site.open() as runtime:
        given = [turn_of(f"s{n}") for n in range(4)]
        for each in given:
            await site.submit(runtime, each)
        while cursor is not None or not pages:
            page = await runtime.records.actions(operator(), ActionsAsked(include_results=True, cursor=cursor))
            pages.append([status.action_id for status in page.actions])
            cursor = page.cursor
        short = await runtime.records.actions(operator(), ActionsAsked())
    assert [len(page) for page in pages] == [2, 2]
    assert sorted(action_id for page in pages for action_id in page) == sorted(each.id for each in given)
    assert len(short.actions) == 4


@pytest.mark.requirement("records:list:whose")
@pytest.mark.parametrize(
    ("by", "asked", "expected"),
    [
        (caller(OTHER, scopes=MINE), {}, ["foreign"]),
        (operator(), {}, ["turn", "failed", "unknown", "elsewhere", "foreign", "waiting"]),
        (operator(), {"principal_id": PrincipalId(OTHER)}, ["foreign"]),
        (operator(scopes=frozenset({"action:read:any"})), {"uncertain": True}, ["unknown"]),
        (operator(tenant="tenant-b"), {}, []),
        (operator(tenant=None), {}, []),
        (me(), {"principal_id": PrincipalId(OTHER)}, "auth.not_authorized"),
        (me(scopes=frozenset({"events:read"})), {}, "auth.not_authorized"),
        (me(scopes=frozenset({"action:read"})), {"include_receipts": True}, "auth.not_authorized"),
        (me(), {"cursor": "7"}, "query.invalid_cursor"),
    ],
)
async def test_a_list_shows_a_callers_own_or_its_tenants(
    site: Site, by: Caller, asked: dict[str, Any], expected: list[str] | str
) -> None:
    async with site.open() as runtime:
        made = await several(site, runtime)
        if isinstance(expected, str):
            with pytest.raises(RequestRefused) as refused:
                await runtime.records.actions(by, ActionsAsked(**asked))
            assert refused.value.code == expected
        else:
            assert names_of(await runtime.records.actions(by, ActionsAsked(**asked)), made) == expected


async def log_of(runtime: Runtime, by: Caller, *, limit: int = 2, **wanted: Any) -> list[wire.Event]:
    """Read the log to its present end, a few at a time."""
    events: list[wire.Event] = []
    cursor: str | None = None
    while True:
        page = await runtime.records.events(by, cursor=cursor, limit=limit, **wanted)
        events += page.events
        if page.next_cursor == cursor:
            return events
        cursor = page.next_cursor


@pytest.mark.requirement("records:log:whose", "records:log:once-and-in-order")
async def test_the_log_shows_a_callers_own_or_its_tenants(site: Site) -> None:
    async with site.open() as runtime:
        made = await several(site, runtime)
        everything = await log_of(runtime, operator())
        own = await log_of(runtime, me())
        results = await log_of(runtime, me(), kinds=["aip.action.result"])
        assert await log_of(runtime, operator(tenant="tenant-b")) == []
        with pytest.raises(RequestRefused) as refused:
            await runtime.records.events(me(scopes=frozenset({"action:read"})))
    assert refused.value.code == "auth.not_authorized"
    assert {event.action_id for event in everything} == {given.id for given in made.values()}
    assert own == [event for event in everything if event.action_id != made["foreign"].id]
    assert results == [event for event in own if event.kind == "aip.action.result"]
    assert len({event.id for event in everything}) == len(everything)


@pytest.mark.requirement("records:events:deterministic")
async def test_equal_happenings_have_equal_ids(tmp_path: Path) -> None:
    logs: list[Sequence[str]] = []
    given = action("session_chat")
    for place in ("one", "two"):
        folder = tmp_path / place
        folder.mkdir()
        site = Site(folder)
        async with site.open() as runtime:
            await site.submit(runtime, given, me())
            logs.append([event.id for event in await log_of(runtime, me())])
    assert logs[0] == logs[1]
    assert all(event_id.startswith("evt_action_") for event_id in logs[0])


async def decided(site: Site, runtime: Runtime, verdict: str = "approved") -> tuple[wire.Action, wire.ApprovalRequest]:
    given, request = await ask(site, runtime)
    await runtime.decide(decision(request, decision=verdict), reviewer())
    return given, request


@pytest.mark.requirement("records:receipts:chain")
@pytest.mark.parametrize(("verdict", "told"), [("approved", "approval_granted"), ("denied", "approval_denied")])
async def test_an_approval_leaves_a_chain_that_holds(site: Site, verdict: str, told: str) -> None:
    async with site.open() as runtime:
        given, request = await decided(site, runtime, verdict)
        chain = await runtime.records.receipts(me(), chain_id=f"approval:{request.id}")
        last = chain.receipts[-1]
        same = await runtime.records.receipts(me(), receipt_id=ReceiptId(last.id))
        result = await runtime.result(given.id, me(), include_receipt=True)
        status = await runtime.status(given.id, me(), include_receipts=True)
    assert [receipt.receipt_type for receipt in chain.receipts][-3:] == ["approval_requested", told, "result_returned"]
    assert wire.schema_violations("receipt_chain", chain.wire()) == []
    assert chain_problems(chain.wire()) == []
    assert same == chain
    assert result.receipt == wire.ReceiptRef(id=last.id, hash=str(last.hash))
    assert status.receipt_chain == chain


@pytest.mark.requirement("records:receipts:chain", "records:client")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE receipts SET receipt = replace(receipt, 'approval_granted', 'approval_denied')", "was changed"),
        ("DELETE FROM receipts WHERE receipt LIKE '%approval_granted%'", "left out"),
        ("UPDATE receipts SET position = 10 - position", "left out, put in or moved"),
    ],
)
async def test_a_chain_that_was_changed_says_where(site: Site, change: str, said: str) -> None:
    async with site.open() as runtime:
        _, request = await decided(site, runtime)
    await site.edit(change)
    async with site.open() as runtime:
        chain = await runtime.records.receipts(me(), chain_id=f"approval:{request.id}")
    assert not wire.chain_holds(chain)
    assert any(said in problem for problem in chain_problems(chain.wire()))


@pytest.mark.requirement("records:receipts:whose")
@pytest.mark.parametrize(
    ("by", "code"),
    [
        (me(), None),
        (reviewer(scopes=frozenset({"receipt:read"})), None),
        (caller(OTHER, scopes=frozenset({"receipt:read:any"})), None),
        (caller(OTHER, scopes=frozenset({"receipt:read"})), "auth.not_authorized"),
        (me(scopes=frozenset({"action:read"})), "auth.not_authorized"),
        (operator(tenant="tenant-b"), "receipt.not_found"),
    ],
)
async def test_a_chain_is_read_by_who_may_see_its_approval(site: Site, by: Caller, code: str | None) -> None:
    async with site.open() as runtime:
        _, request = await decided(site, runtime)
        wanted = f"approval:{request.id}"
        if code is None:
            assert (await runtime.records.receipts(by, chain_id=wanted)).chain_id == wanted
            return
        with pytest.raises(RequestRefused) as refused:
            await runtime.records.receipts(by, chain_id=wanted)
    assert refused.value.code == code


@pytest.mark.requirement("records:receipts:whose")
async def test_an_unknown_chain_and_receipt_are_not_found(site: Site) -> None:
    async with site.open() as runtime:
        for asked in ({"chain_id": "approval:appr_x"}, {"receipt_id": ReceiptId("rcpt_x")}):
            with pytest.raises(RequestRefused) as refused:
                await runtime.records.receipts(operator(), **asked)
            assert refused.value.code == "receipt.not_found"


@pytest.mark.requirement("records:audit:query")
async def test_the_audit_log_is_queried_by_actor_action_and_time(site: Site) -> None:
    async with site.open() as runtime:
        made = await several(site, runtime)
        everything = await runtime.records.audit(operator(), AuditAsked())
        own = await runtime.records.audit(me(), AuditAsked())
        first = await runtime.records.audit(operator(), AuditAsked(limit=1))
        rest = await runtime.records.audit(operator(), AuditAsked(cursor=first.cursor))
        about = await runtime.records.audit(operator(), AuditAsked(action_id=ActionId(made["foreign"].id)))
        early = await runtime.records.audit(operator(), AuditAsked(until=START))
        assert (await runtime.records.audit(operator(tenant="tenant-b"), AuditAsked())).events == []
    assert wire.schema_violations("audit_query_result", everything.wire()) == []
    assert first.events + rest.events == everything.events
    assert {event.actor.id for event in everything.events} == {me().principal.id, OTHER}
    assert own.events == [
        event.model_copy(update={"data": None}) for event in everything.events if event.actor.id == me().principal.id
    ]
    [record] = about.events
    assert record.data == {"action_id": made["foreign"].id, "status": "completed"}
    assert record.identity is not None
    assert [event.occurred_at for event in early.events] == [wire.rfc3339(START)]


@pytest.mark.requirement("records:audit:query")
@pytest.mark.parametrize(
    ("scopes", "asked", "allowed"),
    [
        ({"audit:read"}, {}, True),
        ({"action:read"}, {}, False),
        ({"audit:read"}, {"export": True}, False),
        ({"audit:read"}, {"include_receipts": True}, False),
        ({"audit:read", "audit:export"}, {"include_receipts": True}, True),
        ({"audit:read"}, {"principal_id": PrincipalId(OTHER)}, False),
        ({"audit:read:any"}, {"principal_id": PrincipalId(OTHER)}, True),
    ],
)
async def test_the_audit_log_needs_its_scopes(
    site: Site, scopes: set[str], asked: dict[str, Any], allowed: bool
) -> None:
    async with site.open() as runtime:
        _, request = await decided(site, runtime)
        by = me(scopes=frozenset(scopes))
        if not allowed:
            with pytest.raises(RequestRefused) as refused:
                await runtime.records.audit(by, AuditAsked(**asked))
            assert refused.value.code == "audit.not_authorized"
            return
        found = await runtime.records.audit(by, AuditAsked(**asked))
    assert all(event.data is None for event in found.events)
    if asked.get("include_receipts"):
        [chain] = found.receipt_chains
        assert chain.chain_id == f"approval:{request.id}"
        assert all(receipt.data is None for receipt in chain.receipts)
