"""A server process is killed between a verdict and its event; the next one looks again, and that is all there is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from aip_hermes.client.failures import NoAnswer
from tests.support.counting_hermes import running_provider
from tests.support.crash_stage import running_forks
from tests.support.crash_stories import Story, told
from tests.support.server_serving import written_settings


@pytest.mark.requirement("reconcile:interrupted", "reconcile:reads-only")
async def test_a_server_killed_between_a_verdict_and_its_event_looks_again(tmp_path: Path) -> None:
    (tmp_path / "provider").mkdir()
    story = Story(kind="create", mark="lost")
    with running_provider(tmp_path / "provider") as provider, running_forks() as forks:
        config = written_settings(tmp_path, endpoint_url=provider.url).path
        try:
            assert not await told(forks.start(config, die_at="after_answer"), story)
            assert forks.ended() == signal.SIGKILL
            sent = list(provider.lines())
            assert provider.seen("lost") == 1
            async with forks.start(config, die_at="after_look").connection() as connection:
                with pytest.raises(NoAnswer):
                    await connection.reconcile(story.action_id)
            assert forks.ended() == signal.SIGKILL
            async with forks.start(config).connection() as connection:
                verdict = (await connection.reconcile(story.action_id))["reconciliation"]
                page = await connection.events(story.action_id, kinds=["aip.action.reconciled"])
                latest = (await connection.reconciliation(story.action_id))["reconciliation"]
        finally:
            forks.kill()
        assert list(provider.lines()) == sent
    assert verdict["number"] == 1
    assert [event["data"] for event in page["action_events"]["events"]] == [latest] == [verdict]
