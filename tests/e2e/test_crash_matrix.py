"""A server process is killed at each point of each kind of work; what the next one says is true (design D4).

The model is the table: for each cell what is known after the restart and how often the provider was asked. A cell that
can't occur is named as such, and proven by work that passes the armed server to its end.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from aip_hermes.runtime import FAULT_POINTS
from tests.support.counting_hermes import Provider, running_provider
from tests.support.crash_stage import REVIEWER, Forks, running_forks
from tests.support.crash_stories import KINDS, Kind, Story, approve, known, told
from tests.support.server_serving import written_settings


@dataclass(frozen=True, kw_only=True)
class Cell:
    """at_kill: requests that the provider saw when the server died. state, code: what is known after the restart.
    at_end: requests after the restart and after the client has repeated itself."""

    at_kill: int
    state: str
    code: str | None = None
    at_end: int = 1


INTERRUPTED, LOST = "runtime.interrupted", "connector.hermes_agent.outcome_unknown"

CERTAIN = Cell(at_kill=0, state="failed", code=INTERRUPTED)
UNSENT = Cell(at_kill=0, state="failed", code=LOST, at_end=0)
"""Said to be uncertain, as it must be: the intent is recorded. That nothing left is known to the test alone."""
SENT = Cell(at_kill=1, state="failed", code=LOST)
LETTER_UNSENT, LETTER_SENT = replace(UNSENT, state="dead_lettered"), replace(SENT, state="dead_lettered")
"""What came from the queue and failed for good is shown as a dead letter (runtime behaviour §3)."""
DONE = Cell(at_kill=1, state="completed")
GOES_ON = Cell(at_kill=0, state="completed")
WAITS = Cell(at_kill=0, state="pending_approval")
NEVER = None

SETTLED_S = 5
"""From the order to start again, not from when the server is ready, until every action is known."""


def row(cell: Cell | None, **others: Cell | None) -> Mapping[str, Cell | None]:
    """Return the same cell for every kind of work but `others`."""
    return {kind: others.get(kind, cell) for kind in KINDS}


MATRIX: Mapping[str, Mapping[str, Cell | None]] = {
    # A create has no lock and reads nothing: its claim is its intent. What is queued waits from its claim on.
    "after_claim": row(CERTAIN, create=UNSENT, queued=GOES_ON),
    "after_park": row(NEVER, delete=WAITS),
    "after_decision": row(NEVER, delete=GOES_ON),
    "after_lock": row(CERTAIN, create=NEVER, queued=GOES_ON, delete=GOES_ON),
    "after_prepare": row(CERTAIN, create=UNSENT, queued=GOES_ON, delete=GOES_ON),
    "after_intent": row(UNSENT, create=NEVER, queued=LETTER_UNSENT),
    "after_send": row(SENT, queued=LETTER_SENT),
    "before_publish": row(NEVER, stream=SENT),
    "after_answer": row(SENT, queued=LETTER_SENT),
    "before_settle": row(SENT, queued=LETTER_SENT),
    "after_settle": row(DONE),
}

CELLS = [
    pytest.param(kind, point, cell, id=f"{kind}-{point}")
    for point, cells in MATRIX.items()
    for kind, cell in cells.items()
]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with running_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


def test_every_point_has_its_row() -> None:
    assert set(MATRIX) == set(FAULT_POINTS)


@pytest.mark.requirement("crash:killed:definite", "crash:killed:sent-once", "crash:killed:uncertain-exactly")
@pytest.mark.parametrize(("kind", "point", "cell"), CELLS)
async def test_a_server_killed_anywhere_tells_the_truth_afterwards(
    tmp_path: Path, forks: Forks, provider: Provider, kind: Kind, point: str, cell: Cell | None
) -> None:
    story = Story(kind=kind, mark=f"{kind}-{point}")
    if story.session_id is not None:
        provider.hold(story.session_id)
    config = written_settings(tmp_path, endpoint_url=provider.url).path
    try:
        survived = await told(forks.start(config, die_at=point), story)
        if cell is NEVER:
            assert survived
            return
        # Who asks meanwhile may be told the committed end in the moment before the kill; the death is what counts.
        assert forks.ended() == signal.SIGKILL
        await seen(provider, story, cell.at_kill)
        await after_the_restart(forks, provider, config, story, cell)
    finally:
        forks.kill()


DEAD_STARTS: list[tuple[Kind, str]] = [
    ("fork", "after_claim"),
    ("turn", "after_intent"),
    ("delete", "after_intent"),
    ("queued", "after_send"),
    ("create", "after_settle"),
]


@pytest.mark.requirement("crash:killed:definite", "crash:killed:sent-once")
@pytest.mark.parametrize(("kind", "point"), DEAD_STARTS)
async def test_servers_that_die_while_they_start_change_nothing(
    tmp_path: Path, forks: Forks, provider: Provider, kind: Kind, point: str
) -> None:
    story, cell = Story(kind=kind, mark=f"{kind}-dead-starts"), MATRIX[point][kind]
    assert cell is not NEVER
    if story.session_id is not None:
        provider.hold(story.session_id)
    config = written_settings(tmp_path, endpoint_url=provider.url).path
    try:
        assert not await told(forks.start(config, die_at=point), story)
        assert forks.ended() == signal.SIGKILL
        live_s = 0.0
        while not forks.start_briefly(config, live_s=live_s):
            live_s = live_s * 1.5 + 0.01
        await seen(provider, story, cell.at_kill)
        await after_the_restart(forks, provider, config, story, cell)
    finally:
        forks.kill()


async def after_the_restart(forks: Forks, provider: Provider, config: Path, story: Story, cell: Cell) -> None:
    settled_by = asyncio.get_running_loop().time() + SETTLED_S
    server = forks.start(config)
    async with server.connection() as requester, server.connection(REVIEWER) as reviewer:
        async with asyncio.timeout_at(settled_by):
            found = await known(requester, story.action_id)
        assert (found.state, found.code) == (cell.state, cell.code)
        assert (found.uncertain, found.retryable) == (cell.code == LOST, cell.code == INTERRUPTED)
        await story.submit(requester)  # a client that got no answer
        again = await known(requester, story.action_id)
        if again.state == "pending_approval":
            await approve(reviewer, str(again.approval_id))
            again = await known(requester, story.action_id)
        assert (again.state, again.code) == ((found.state, found.code) if cell.code == LOST else ("completed", None))
    await seen(provider, story, cell.at_end)


async def seen(provider: Provider, story: Story, number: int) -> None:
    """Wait until the provider has read what had left, and require that it is no more than that."""
    async with asyncio.timeout(10):
        while provider.seen(story.mark) < number:
            await asyncio.to_thread(provider.hold, "anything-in-between")
    assert provider.seen(story.mark) == number
