"""The client checklist against a real hermes-agent, of the release whose quirks are known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aip_hermes.cli.demo.theatre import theatre
from aip_hermes.client import AipClient, SqliteIdentityStore
from aip_hermes.client.checklist import run_checklist
from aip_hermes.ids import EndpointId
from tests.real.conftest import Endpoint
from tests.support.checklist_evidence import PROGRAM

pytestmark = pytest.mark.real


@pytest.mark.requirement("checklist:quirks", "checklist:cleans-up")
async def test_every_point_passes_its_quirks_are_named_and_no_session_is_left(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    async with (
        theatre(endpoint_url=endpoint.url, key_file=endpoint.key_file, keep=False) as (stage, folder),
        SqliteIdentityStore(tmp_path / "ids" / "identities.db") as store,
        AipClient(
            base_url=stage.requester.origin, token_file=folder / "tokens" / "requester", store=store
        ) as requester,
        AipClient(base_url=stage.requester.origin, token_file=folder / "tokens" / "reviewer") as reviewer,
    ):
        document = await run_checklist(
            requester=requester,
            reviewer=reviewer,
            program=PROGRAM,
            endpoint=EndpointId("primary"),
            run=os.urandom(6).hex(),
        )
    assert [point.id for point in document.points if point.outcome != "pass"] == []
    assert document.quirks == ("fork-child-resolves", "fork-not-atomic")
    assert {each.outcome for each in document.cleanup} == {"deleted"}
