"""A process that walks a lifecycle is SIGKILLed at ten random moments; others go on from its file of identities.

`make soak` does it fifty times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lifecycle_kills import walked


@pytest.mark.requirement("lifecycle:killed")
async def test_a_walker_is_killed_at_random_moments_and_others_finish_its_walk(tmp_path: Path) -> None:
    killed: list[int] = []
    assert await walked(tmp_path, kills=10, seed=0, on_kill=killed.append) == []
    assert killed == list(range(1, 11))
