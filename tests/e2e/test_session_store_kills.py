"""A serving endpoint is SIGKILLed at random moments of a turn; the next one holds every row that was durable, once.

SESSION_KILLS: how many kills for each kind of moment; 2 when unset. The soak does thirty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crash_stage import Forks, running_forks
from tests.support.session_kills import killed_starts, killed_turns

KILLS = int(os.environ.get("SESSION_KILLS", "2"))


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@pytest.mark.requirement("sessions:killed:nothing-lost", "sessions:killed:nothing-twice", "sessions:killed:goes-on")
async def test_an_endpoint_killed_in_a_turn_loses_no_durable_row_and_keeps_none_twice(
    tmp_path: Path, forks: Forks
) -> None:
    await killed_turns(tmp_path, forks, kills=KILLS, seed=KILLS)


@pytest.mark.requirement("sessions:killed:first-start")
async def test_a_first_start_killed_at_a_random_point_leaves_a_folder_that_the_next_one_serves(
    tmp_path: Path, forks: Forks
) -> None:
    await killed_starts(tmp_path, forks, kills=2 * KILLS, seed=KILLS)
