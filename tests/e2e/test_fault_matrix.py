"""Each operation that changes something × each fault: the verdict at every moment, and nothing sent by looking.

The table is the promise: the verdicts of one cell in the order of its looks. A cell that can't occur says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from aip_hermes.client import CallResult
from aip_hermes.embedded import QUIRKS
from aip_hermes.ids import ActionId
from tests.support.fault_cells import OPERATIONS, Cell
from tests.support.fault_site import QUIET_S, FaultSite, eventually, fault_site

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Never:
    """A cell that can't occur."""

    reason: str


Look = tuple[str, str]
"""Verdict and reason."""
Looks = tuple[Look, ...]
Row = Mapping[str, Looks | Never]

EARLY: Look = ("indeterminate", "may_be_under_way")
RUNNING: Look = ("indeterminate", "not_settled")
CERTAIN: Look = ("applied", "certain")
REFUSED: Look = ("not_applied", "certain")

DONE: Mapping[str, Look] = {
    "session_create": ("applied", "row_found"),
    "session_patch": ("applied", "values_found"),
    "session_delete": ("applied", "row_gone"),
    "session_fork": ("applied", "child_found"),
    "session_chat": ("applied", "reply_stored"),
    "session_chat_stream": ("applied", "reply_stored"),
    "chat": ("applied", "reply_stored"),
    "chat_stream": ("applied", "reply_stored"),
    "run_start": ("applied", "run_found"),
    "responses": ("applied", "text_found"),
    "responses_stream": ("applied", "text_found"),
    "job_create": ("applied", "job_found"),
    "job_update": ("applied", "values_found"),
    "job_delete": ("applied", "target_gone"),
    "job_pause": ("applied", "state_found"),
}
MISSED: Mapping[str, Looks] = {
    "session_create": (EARLY, ("not_applied", "no_row")),
    "session_patch": (EARLY, ("not_applied", "values_as_before")),
    "session_delete": (EARLY, ("not_applied", "row_found")),
    "session_fork": (EARLY, ("not_applied", "no_child")),
    "session_chat": (EARLY, ("not_applied", "nothing_stored")),
    "session_chat_stream": (EARLY, ("not_applied", "nothing_stored")),
    "chat": (EARLY, ("not_applied", "nothing_stored")),
    "chat_stream": (EARLY, ("not_applied", "nothing_stored")),
    "run_start": (("indeterminate", "not_found"),) * 2,
    "responses": (("indeterminate", "not_found"),) * 2,
    "responses_stream": (("indeterminate", "not_found"),) * 2,
    "job_create": (("indeterminate", "not_found"),) * 2,
    "job_update": (("indeterminate", "values_as_before"),) * 2,
    "job_delete": (("indeterminate", "target_found"),) * 2,
    "job_pause": (("indeterminate", "state_missing"),) * 2,
}

TWICE: Row = {name: (done, done) for name, done in DONE.items()}
ROW_GONE: Looks = (("indeterminate", "row_gone"),) * 2
ANOTHER: Looks = (("indeterminate", "another_row"),) * 2
TARGET_GONE: Looks = (("indeterminate", "target_gone"),) * 2
MAKES = Never("it addresses nothing that was there before")
OTHER_ID = Never("the endpoint chooses the id: what is made again has another one")
ONE_ANSWER = Never("its answer is no stream")
NO_TURN = Never("no transcript is compressed by it")
AT_ONCE = Never("it is answered before anything is written")
NO_QUIRKS = Never("the quirks are those of sessions")
SESSIONS = tuple(name for name in OPERATIONS if name.startswith("session_"))
STREAMS = ("session_chat_stream", "chat_stream", "responses_stream")
TURNS = ("session_chat", "session_chat_stream", "chat", "chat_stream")
NO_HALVES = Never("it is one step at the endpoint")


def only(why: Never, **cells: Looks) -> Row:
    """Return a row of which the other cells can't occur."""
    return {name: cells.get(name, why) for name in OPERATIONS}


TABLE: Mapping[str, Row] = {
    "lost-answer": TWICE,
    "reset-mid-body": TWICE,
    "html-502": TWICE,
    "lost-request": MISSED,
    "late-effect": {name: (MISSED[name][0], done) for name, done in DONE.items()},
    "late-effect, after the quiet time": {name: (*MISSED[name], done) for name, done in DONE.items()},
    "late-answer": dict.fromkeys(DONE, (RUNNING, CERTAIN)),
    "locked-database": {**dict.fromkeys(DONE, (RUNNING, CERTAIN)), "run_start": AT_ONCE},
    "refused-database": dict.fromkeys(DONE, (REFUSED, REFUSED)),
    "stalled-stream": only(ONE_ANSWER, **{name: (DONE[name],) * 2 for name in STREAMS}),
    "no-terminal-event": only(ONE_ANSWER, **{name: (DONE[name],) * 2 for name in STREAMS}),
    "compress": only(
        NO_TURN,
        session_chat=(DONE["session_chat"],) * 2,
        session_chat_stream=(DONE["session_chat_stream"],) * 2,
    ),
    "compress-in-place": only(
        NO_TURN,
        session_chat=(DONE["session_chat"],) * 2,
        session_chat_stream=(DONE["session_chat_stream"],) * 2,
    ),
    "gone meanwhile": {
        **dict.fromkeys(("session_create", "run_start", "responses", "responses_stream", "job_create"), MAKES),
        "session_patch": ROW_GONE,
        "session_delete": (DONE["session_delete"],) * 2,
        "session_fork": (("indeterminate", "source_gone"),) * 2,
        **dict.fromkeys(TURNS, ROW_GONE),
        "job_update": TARGET_GONE,
        "job_delete": (DONE["job_delete"],) * 2,
        "job_pause": TARGET_GONE,
    },
    "made again by somebody": {
        # Whose create it was is said by no read; the caller's own id is there, as it was wanted.
        "session_create": (DONE["session_create"],) * 2,
        "session_patch": ANOTHER,
        "session_delete": ANOTHER,
        "session_fork": ANOTHER,
        **dict.fromkeys(TURNS, ANOTHER),
        "run_start": (("indeterminate", "not_found"),) * 2,
        **dict.fromkeys(("responses", "responses_stream"), MAKES),
        **dict.fromkeys(("job_create", "job_update", "job_delete", "job_pause"), OTHER_ID),
    },
    "changed meanwhile": {
        **MISSED,
        "session_create": (DONE["session_create"],) * 2,
        "session_patch": (("indeterminate", "changed_by_others"),) * 2,
        "session_fork": (("indeterminate", "ended_by_another"),) * 2,
        **dict.fromkeys(TURNS, (EARLY, ("not_applied", "message_missing"))),
        "job_update": (("indeterminate", "changed"),) * 2,
    },
    "lost-answer, with every quirk": only(NO_QUIRKS, **{name: (DONE[name],) * 2 for name in SESSIONS}),
    "lost-request, with every quirk": only(NO_QUIRKS, **{name: MISSED[name] for name in SESSIONS}),
    "half done": only(NO_HALVES, session_fork=(EARLY, ("partially_applied", "half_done"))),
}

Played = list[Look]
Play = Callable[[Cell, str], Awaitable[Played]]


async def lost(cell: Cell, operation: str, fault: str) -> CallResult:
    """Submit what meets a fault and ends uncertain."""
    kind, sent = OPERATIONS[operation], len(cell.site.counted.mutations)
    cell.site.meets(f"{fault}:{kind.fault}:1")
    result = await cell.site.act(operation, kind.values(cell))
    assert result.outcome == "uncertain"
    assert len(cell.site.counted.mutations) == sent + 1
    return result


async def looks(cell: Cell, result: CallResult, *, quiet: bool = True) -> Played:
    """Look at once, and when the quiet time is over."""
    played = [await look(cell, result)]
    if quiet:
        cell.site.clock.advance(QUIET_S)
        played.append(await look(cell, result))
    return played


async def look(cell: Cell, result: CallResult) -> Look:
    verdict = await cell.site.look(result.action_id)
    if verdict.reason == EARLY[1]:
        assert verdict.retry_after_ms is not None
        assert 0 < verdict.retry_after_ms <= QUIET_S * 1000
    return verdict.verdict, verdict.reason


def hidden_by(fault: str) -> Play:
    async def play(cell: Cell, operation: str) -> Played:
        result = await lost(cell, operation, fault)
        await eventually(lambda: OPERATIONS[operation].happened(cell))
        return await looks(cell, result)

    return play


async def never_arrived(cell: Cell, operation: str) -> Played:
    result = await lost(cell, operation, "lost-request")
    played = await looks(cell, result)
    assert not await OPERATIONS[operation].happened(cell)
    return played


def landing(*, quiet: bool) -> Play:
    async def play(cell: Cell, operation: str) -> Played:
        result = await lost(cell, operation, "late-effect")
        played = await looks(cell, result, quiet=quiet)
        cell.site.held.let()
        await eventually(lambda: OPERATIONS[operation].happened(cell))
        return [*played, await look(cell, result)]

    return play


def held_up_by(fault: str, *, happens: bool) -> Play:
    """The answer comes late; meanwhile the action runs, and nothing is read for it."""

    async def play(cell: Cell, operation: str) -> Played:
        kind, site = OPERATIONS[operation], cell.site
        site.meets(f"{fault}:{kind.fault}:1")
        acting = asyncio.create_task(site.act(operation, kind.values(cell)))
        await eventually(_held(site))
        if operation != "run_start":  # a run goes on behind its answer
            assert await kind.happened(cell) == happens
        verdict = await site.aip.reconcile(await running(site))
        site.held.let()
        result = await acting
        assert result.outcome == "completed"
        return [(verdict.verdict, verdict.reason), await look(cell, result)]

    return play


def _held(site: FaultSite) -> Callable[[], Awaitable[bool]]:
    async def held() -> bool:
        await site.hermes.client.get("/health")
        return site.held.held > 0

    return held


async def running(site: FaultSite) -> ActionId:
    """Return the one action that runs."""
    found = [
        each["action_id"]
        for state in ("running", "streaming")
        for each in (await site.aip.connection.actions(state=state))["action_list"]["actions"]
    ]
    [action_id] = found
    return ActionId(action_id)


async def refused(cell: Cell, operation: str) -> Played:
    kind = OPERATIONS[operation]
    cell.site.meets(f"refused-database:{kind.fault}:1")
    result = await cell.site.act(operation, kind.values(cell))
    assert result.outcome == "connector_failed"
    return await looks(cell, result)


async def stalled(cell: Cell, operation: str) -> Played:
    """Nobody waits for ever: the caller gives up, and what the turn did is found."""
    kind, site = OPERATIONS[operation], cell.site
    site.meets(f"stalled-stream:{kind.fault}:1")
    acting = asyncio.create_task(site.act(operation, kind.values(cell)))
    await eventually(lambda: kind.happened(cell))
    result = await site.aip.cancel(await running(site))
    assert result.outcome == (await acting).outcome == "uncertain"
    return await looks(cell, result)


async def gone(cell: Cell, operation: str) -> Played:
    result = await lost(cell, operation, "lost-request")
    path = f"/api/jobs/{cell.job_id}" if cell.job_id else f"/api/sessions/{cell.source}"
    assert (await cell.site.hermes.client.delete(path)).status_code == 200
    return await looks(cell, result)


async def made_again(cell: Cell, operation: str) -> Played:
    result = await lost(cell, operation, "lost-request")
    if operation in ("session_create", "run_start"):
        await cell.site.hermes.create(cell.made)
    else:
        await cell.site.hermes.client.delete(f"/api/sessions/{cell.source}")
        await cell.site.hermes.create(cell.source)
    return await looks(cell, result)


async def changed(cell: Cell, operation: str) -> Played:
    """Somebody changes what an operation addresses, or does something like it, where its request was lost."""
    hermes = cell.site.hermes
    result = await lost(cell, operation, "lost-answer" if operation == "session_create" else "lost-request")
    if operation.startswith("job_") and cell.job_id:
        done = await hermes.client.patch(f"/api/jobs/{cell.job_id}", json={"prompt": "Something else."})
    elif operation == "job_create":
        job = {"name": "another", "schedule": "0 3 1 1 *", "prompt": "Summarise."}
        done = await hermes.client.post("/api/jobs", json=job)
    elif operation == "session_fork":
        done = await hermes.client.post(f"/api/sessions/{cell.source}/fork", json={"id": f"{cell.name}-theirs"})
    elif operation in ("session_create", "session_patch", "session_delete"):
        where = cell.made if operation == "session_create" else cell.source
        done = await hermes.client.patch(f"/api/sessions/{where}", json={"title": f"{cell.name}, theirs"})
    else:
        done = await hermes.chat(cell.source, "Something else.")
    assert done.is_success
    return await looks(cell, result)


async def half(cell: Cell, operation: str) -> Played:
    """The title is taken: a fork that is not atomic stops before its last step, and nobody hears of it."""
    await cell.site.hermes.create(f"{cell.name}-taken", title=f"{cell.name}, child")
    result = await lost(cell, operation, "lost-answer")
    return await looks(cell, result)


PLAYS: Mapping[str, Play] = {
    "lost-answer": hidden_by("lost-answer"),
    "reset-mid-body": hidden_by("reset-mid-body"),
    "html-502": hidden_by("html-502"),
    "lost-request": never_arrived,
    "late-effect": landing(quiet=False),
    "late-effect, after the quiet time": landing(quiet=True),
    "late-answer": held_up_by("late-answer", happens=True),
    "locked-database": held_up_by("locked-database", happens=False),
    "refused-database": refused,
    "stalled-stream": stalled,
    "no-terminal-event": hidden_by("no-terminal-event"),
    "compress": hidden_by("compress+lost-answer"),
    "compress-in-place": hidden_by("compress-in-place+lost-answer"),
    "gone meanwhile": gone,
    "made again by somebody": made_again,
    "changed meanwhile": changed,
    "lost-answer, with every quirk": hidden_by("lost-answer"),
    "lost-request, with every quirk": never_arrived,
    "half done": half,
}
LONG = frozenset({"compress", "compress-in-place"})
"""What needs a transcript that is worth compressing."""
QUIRKY = frozenset({"half done", "lost-answer, with every quirk", "lost-request, with every quirk"})

CELLS = [
    pytest.param(fault, operation, id=f"{operation}-{fault}")
    for fault, row in TABLE.items()
    for operation, cell in row.items()
    if not isinstance(cell, Never)
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def correct(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FaultSite]:
    async with fault_site(tmp_path_factory.mktemp("correct")) as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def quirky(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FaultSite]:
    async with fault_site(tmp_path_factory.mktemp("quirky"), quirks=QUIRKS) as site:
        yield site


async def test_the_table_has_a_cell_for_each_operation_and_fault() -> None:
    assert TABLE.keys() == PLAYS.keys()
    assert [fault for fault, row in TABLE.items() if row.keys() != OPERATIONS.keys()] == []
    assert all(each.reason for row in TABLE.values() for each in row.values() if isinstance(each, Never))


@pytest.mark.requirement("reconcile:matrix", "reconcile:reads-only", "reconcile:quiet:late-effects")
@pytest.mark.parametrize(("fault", "operation"), CELLS)
async def test_the_verdict_is_right_at_every_moment(
    correct: FaultSite, quirky: FaultSite, fault: str, operation: str
) -> None:
    site = quirky if fault in QUIRKY else correct
    async with asyncio.timeout(120):
        cell = await Cell.arranged(site, turns=4 if fault in LONG else 1, with_job=OPERATIONS[operation].with_job)
        assert tuple(await PLAYS[fault](cell, operation)) == TABLE[fault][operation]


@pytest.mark.requirement("reconcile:matrix", "reconcile:reads-only")
@pytest.mark.parametrize("operation", ["session_chat", "session_chat_stream"])
async def test_a_turn_whose_answer_outlasts_every_patience_is_found_when_it_is_stored(
    tmp_path: Path, operation: str
) -> None:
    async with fault_site(tmp_path, turn_timeout_s=3) as site, asyncio.timeout(60):
        cell = await Cell.arranged(site)
        result = await lost(cell, operation, "late-answer")
        await eventually(lambda: OPERATIONS[operation].happened(cell))
        assert await looks(cell, result) == [DONE[operation]] * 2
