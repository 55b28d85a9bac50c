"""The checklist against the real server and an embedded endpoint: right, quirky, failing, and without a reviewer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from aip_hermes.client.checklist import Cleaned, Document, Told, markdown, problems_of
from aip_hermes.embedded import ModelReply, ModelRequest, Pieces
from aip_hermes.embedded.agent.models import ToolCall
from aip_hermes.embedded.api.endpoint import QUIRKS
from tests.support.checklist_evidence import verified
from tests.support.embedded_endpoint import KEY, FailingModel, RecordingModel
from tests.support.lifecycle_site import lifecycle_site
from tests.support.markers import found_in, mark
from tests.support.server_site import write_secret

_OUTSIDE = {"fork-not-atomic", "fork-child-resolves"}
"""Quirks that a client of the AIP server can see."""


class TellingModel(RecordingModel):
    """Asks for a tool, then answers, with a marker in each of its texts."""

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        if request.messages[-1]["role"] == "user":
            call = ToolCall(id="call_1", name=mark("member"), arguments=f'{{"x": "{mark("toolargs")}"}}')
            yield ModelReply(text="", finish_reason="tool_calls", tool_calls=(call,))
            return
        yield mark("reply")
        yield ModelReply(text=mark("reply"))


def outcomes(document: Document) -> dict[str, str]:
    return {point.id: point.outcome for point in document.points}


@pytest.mark.requirement("checklist:passes", "checklist:cleans-up")
async def test_every_point_passes_and_nothing_is_left(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        document = await verified(site)
        assert await site.rows() == {}
    assert set(outcomes(document).values()) == {"pass"}
    assert len(document.points) == 14
    assert (document.verdict, document.quirks) == ("pass", ())
    assert {each.outcome for each in document.cleanup} == {"deleted", "never_made"}
    assert (document.deployment.provider, document.deployment.endpoint) == ("hermes-agent", "primary")
    assert problems_of(json.dumps(document.json_value()), rendering=markdown(document)) == []


@pytest.mark.requirement("checklist:quirks", "checklist:cleans-up")
@pytest.mark.parametrize("quirks", [*([quirk] for quirk in sorted(QUIRKS)), sorted(QUIRKS)], ids="+".join)
async def test_with_each_quirk_on_and_with_all_it_passes_or_names_them(tmp_path: Path, quirks: list[str]) -> None:
    async with lifecycle_site(tmp_path, quirks=quirks) as site:
        document = await verified(site)
        assert await site.rows() == {}
    assert document.verdict == "pass" or set(quirks) & set(document.quirks)
    assert set(document.quirks) == set(quirks) & _OUTSIDE
    assert problems_of(json.dumps(document.json_value()), rendering=markdown(document)) == []


@pytest.mark.requirement("checklist:no-reviewer")
async def test_without_a_reviewer_the_delete_is_withdrawn_and_what_is_left_is_named(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        document = await verified(site, reviewer=None)
        async with site.client("reviewer") as reviewer:
            assert (await reviewer.approvals(status="pending")).approvals == ()
        left = {each.session_id for each in document.cleanup if each.outcome == "left"}
        assert left == set(await site.rows())
    assert len(left) == 3
    assert document.verdict == "pass"
    wanted = dict.fromkeys(outcomes(document), "pass") | {"delete-confirmed": "not_applicable"}
    assert outcomes(document) == wanted
    assert problems_of(json.dumps(document.json_value())) == []


@pytest.mark.requirement("checklist:fails", "checklist:cleans-up", "checklist:redacted")
async def test_a_turn_that_fails_fails_its_point_by_codes_and_what_stands_on_it_does_not_apply(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path, model=FailingModel()) as site:
        document = await verified(site)
        assert await site.rows() == {}
    passed = ("discovery", "identities", "create", "replay", "list")
    wanted = dict.fromkeys(outcomes(document), "not_applicable") | dict.fromkeys(passed, "pass") | {"turn": "fail"}
    assert outcomes(document) == wanted
    assert document.verdict == "fail"
    reason = document.points[5].reason or ""
    assert reason.startswith("the exchange failed: lifecycle.")
    assert "the model answered" not in json.dumps(document.json_value())
    assert problems_of(json.dumps(document.json_value())) == []


@pytest.mark.requirement("checklist:cleans-up")
@pytest.mark.parametrize("stopped_after", [3, 9, 12, 14])
async def test_who_stops_it_anywhere_leaves_no_session(tmp_path: Path, stopped_after: int) -> None:
    def stop(told: Told) -> None:
        if told.number == stopped_after and told.outcome is not None:
            running.cancel()

    heard: list[Cleaned] = []
    async with lifecycle_site(tmp_path) as site:
        running = asyncio.ensure_future(verified(site, tell=stop, on_cleanup=heard.extend))
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await site.rows() == {}
        async with site.client("reviewer") as reviewer:
            assert (await reviewer.approvals(status="pending")).approvals == ()
    assert len(heard) == 4
    assert {each.outcome for each in heard} <= {"deleted", "never_made"}


@pytest.mark.requirement("checklist:fails", "checklist:cleans-up")
async def test_a_token_that_the_server_refuses_fails_the_first_point_and_leaves_nothing(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        write_secret(tmp_path / "tokens" / "forger", "a-token-that-nobody-knows")
        document = await verified(site, who="forger")
    assert document.points[0].reason == "the exchange failed: auth.native_http_unauthorized"
    assert set(outcomes(document).values()) == {"fail", "not_applicable"}
    assert {each.outcome for each in document.cleanup} == {"never_made"}
    assert document.deployment.principal_id is None


@pytest.mark.requirement("checklist:fails")
async def test_a_token_that_may_invoke_nothing_fails_the_first_point_which_says_what_is_missing(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        document = await verified(site, who="reviewer")
    reason = document.points[0].reason or ""
    assert reason.startswith("the exchange failed: lifecycle.capability_missing, missing: ")
    assert document.points[0].seen == {}
    assert document.verdict == "fail"
    assert problems_of(json.dumps(document.json_value())) == []


@pytest.mark.requirement("checklist:fails")
async def test_a_reviewer_who_is_the_requester_can_confirm_no_delete(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        document = await verified(site, reviewer="requester")
        left = {each.session_id for each in document.cleanup if each.outcome == "left"}
        assert left == set(await site.rows())
    assert document.verdict == "fail"
    assert document.points[12].reason == "the exchange failed: auth.not_authorized"
    assert outcomes(document)["recovery"] == "pass"


@pytest.mark.requirement("checklist:redacted")
async def test_no_text_credential_or_memory_scope_is_in_the_evidence(tmp_path: Path) -> None:
    model = TellingModel()
    async with lifecycle_site(tmp_path, model=model) as site:
        tokens = [(tmp_path / "tokens" / who).read_text(encoding="utf-8").strip() for who in ("requester", "reviewer")]
        document = await verified(site)
    assert document.verdict == "pass"
    assert any(found_in(str(request.messages)) >= {"reply", "toolargs"} for request in model.requests)
    told = json.dumps(document.json_value()) + markdown(document)
    assert found_in(told) == set()
    planted = (KEY, *tokens, "verify-memory", "This is a check", "Checked by", "Reply", "Do not call", "Keep the")
    assert [text for text in planted if text in told] == []
