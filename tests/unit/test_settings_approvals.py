"""Who decides at an endpoint, as a settings file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.hermes import HermesConnector
from aip_hermes.ports import NoFaults, SystemClock
from aip_hermes.settings import Settings, SettingsError
from tests.support.server_site import write_secret, write_settings

TEXT = """
[[endpoints]]
id = "primary"
base_url = "http://127.0.0.1:9/"
{lines}
[[tokens]]
file = "token"
principal = "agent:a:requester"
"""


def load(folder: Path, lines: str) -> Settings:
    write_secret(folder / "token", "token-0123456789-abcdef\n")
    return Settings.load(write_settings(folder / "aip-hermes.toml", TEXT.format(lines=lines)))


@pytest.mark.requirement("approval:terms-of-endpoint")
@pytest.mark.parametrize(
    ("lines", "terms"),
    [
        ("", None),
        ("approvers = 2", ApprovalTerms(approvers=2)),
        ('approver_selector = "role:session-reviewer"', ApprovalTerms(selector="role:session-reviewer")),
        ("approval_ttl_s = 60", ApprovalTerms(ttl_ms=60_000)),
        (
            'approver_selector = "group:on-call"\napprovers = 3\napproval_ttl_s = 3600.5',
            ApprovalTerms(selector="group:on-call", approvers=3, ttl_ms=3_600_500),
        ),
    ],
)
async def test_an_endpoint_says_who_decides(tmp_path: Path, lines: str, terms: ApprovalTerms | None) -> None:
    [endpoint] = load(tmp_path, lines).endpoints
    assert endpoint.approval == terms
    async with HermesConnector([endpoint], clock=SystemClock(), faults=NoFaults()) as connector:
        assert {offer.approval for offer in connector.offers()} == {terms}


@pytest.mark.requirement("approval:terms-of-endpoint", "approval:policy-refused-at-start")
@pytest.mark.parametrize(
    ("lines", "member", "rule"),
    [
        ('approver_selector = "all(role:a, role:b)"', "endpoints[0].approver_selector", "are not supported"),
        ('approver_selector = "delegated:a"', "endpoints[0].approver_selector", "are not supported"),
        ("approvers = 0", "endpoints[0].approvers", "1 to 32"),
        ('approver_selector = "principal:human:a"\napprovers = 2', "endpoints[0].approver_selector", "one principal"),
        ("approval_ttl_s = 0", "endpoints[0].approval_ttl_s", "greater than 0"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_place_and_rule(tmp_path: Path, lines: str, member: str, rule: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, lines)
    assert refused.value.member == member
    assert rule in str(refused.value)
    assert refused.value.line is not None
