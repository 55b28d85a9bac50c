"""Points 1 to 5: who this is, four identities, a row that was asked for once, and the list that shows it."""

from __future__ import annotations

from typing import Final

from aip_hermes.client.checklist.case import Case, Point
from aip_hermes.ids import ActionId, IdempotencyKey

__all__ = ["create", "discover", "identities", "listed", "replayed"]

_SCHEMA_CODE: Final = "action.input_schema_invalid"
_BAD_IDS: Final = {"dots": "..", "slash": "a/b", "backslash": "a\\b", "control": "a\x1bb", "long": "x" * 257}
_PROMPT: Final = "Keep the transcript factual and concise."


async def discover(case: Case, point: Point) -> None:
    """Read the caller's own catalogue, by the endpoint's qualified names."""
    point.did("read who the token is", "read the catalogue of its tenant, page by page")
    found = await case.life.discover()
    case.discovered = found
    point.saw(principal_id=found.principal_id, capabilities=len(found.digests))
    point.saw_hash(contract_digests=found.digests)
    point.check(f"{len(found.digests)} session capabilities of the endpoint are offered", True)
    point.check("each publishes the digest of its contract", all(found.digests.values()))
    contract = await case.requester.contract(case.reads.capability("session_delete"))
    keyed = contract is not None and contract.idempotency.requirement == "required"
    point.saw(delete_needs_approval=found.delete_needs_approval, delete_needs_key=keyed)
    point.check("a delete needs a key and another person's approval", keyed and found.delete_needs_approval)


async def identities(case: Case, point: Point) -> None:
    """Have what can't be an id refused before anything is kept; the ids that were chosen are free."""
    chosen = {str(case.source_id), str(case.session_key), case.new_id("act_"), case.new_id("key_")}
    point.check("Action ID, key, session id and session key are four values", len(chosen) == 4)
    point.saw(session_id=case.source_id, child_id=case.child_id)
    for name, identity in _BAD_IDS.items():
        code = await case.code_of(point, "session_create", {"body": {"id": identity}})
        point.saw(**{f"refused_{name}": code})
        point.check(f"an id that is no id ({name}) is refused by the published schema", code == _SCHEMA_CODE)
    for session_id in case.sessions:
        point.did(f"read the row {session_id}")
        point.check(f"{session_id} is free", await case.reads.find(session_id) is None)


async def create(case: Case, point: Point) -> None:
    """Create under an id of our own; the exact row and the list's entry were read by the lifecycle then."""
    point.did("SessionLifecycle.create: one create, then the exact row, then the list")
    case.may_exist.add(case.source_id)
    case.source = await case.life.create(
        case.source_id, title=case.title, system_prompt=_PROMPT, session_key=case.session_key
    )
    action_id = await _created_by(case)
    store = case.requester.store
    record = None if store is None else await store.call(action_id)
    point.saw(action_id=action_id, session_id=case.source.id)
    point.check("the returned id is the intended one", case.source.id == case.source_id)
    whole = record is not None and record.idempotency_key is not None and record.new_session_id == case.source_id
    point.saw(attempts=None if record is None else record.attempts)
    point.check("its Action ID, key and session id are in the store of identities", whole)
    row = await case.row(point, case.source_id)
    shown = row.raw.get("system_prompt")
    point.saw(source_is_api=row.source == "api_server", message_count=row.message_count, started_at=_ms(row.started_at))
    point.saw_hash(row=row.raw)
    point.check("the row flags its system prompt and does not show it", row.has_system_prompt is True and shown is None)
    point.check("it is open and empty", row.ended_at is None and row.message_count == 0)


async def replayed(case: Case, point: Point) -> None:
    """Call with the same key, another Action ID and another input: the first answer comes back."""
    action_id = await _created_by(case)
    key = await _key_of(case, action_id)
    case.may_exist.add(case.other_id)
    result = await case.call(point, "session_create", {"body": {"id": str(case.other_id)}}, key=key)
    point.saw(status=result.status, replayed=result.replay is not None)
    point.check("the answer says that it is a replay", result.replay is not None)
    assert result.replay is not None  # noqa: S101 - checked above
    point.saw(original_action_id=result.replay.original_action_id, input_differs=result.replay.input_differs)
    point.check("it names the original Action ID", result.replay.original_action_id == action_id)
    point.check("it says that the input differs", result.replay.input_differs)
    point.did(f"read the row {case.other_id}")
    point.check("nothing was made by the repeat", await case.reads.find(case.other_id) is None)


async def listed(case: Case, point: Point) -> None:
    """Look through the list, each session once; a list is no snapshot, the exact row decides."""
    point.did("read the list page by page until the session was found")
    found = await case.reads.listed(case.source_id, children=False)
    row = await case.row(point, case.source_id)
    point.saw(pages=found.pages, sessions_seen=found.seen, found=found.entry is not None)
    point.check("the list shows the session", found.entry is not None)
    assert found.entry is not None  # noqa: S101 - checked above
    same = (found.entry.title, found.entry.source) == (row.title, row.source)
    point.saw_hash(title=row.title)
    point.check("its entry and its row have the same title and source", same and row.title == case.title)


async def _created_by(case: Case) -> ActionId:
    steps = await case.life.steps()
    return next(step.action_id for step in steps if step.operation == "session_create")


async def _key_of(case: Case, action_id: ActionId) -> IdempotencyKey:
    store = case.requester.store
    record = None if store is None else await store.call(action_id)
    assert record is not None and record.idempotency_key is not None  # noqa: S101, PT018 - `create` has kept it
    return record.idempotency_key


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
