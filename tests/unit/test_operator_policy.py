"""The operator's policy: its defaults, its bounds, and the table of the settings file that writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes.hermes.operator import OperatorPolicy, OperatorPolicyInvalid
from aip_hermes.hermes.operator.policy import BOUNDS, DEFAULT_INSTRUCTIONS
from aip_hermes.settings import Settings, SettingsError
from aip_hermes.settings.tables import OperatorTable
from tests.support.server_site import write_secret, write_settings

BASE = (
    '[[endpoints]]\nid = "primary"\nbase_url = "http://127.0.0.1:8642/"\nkey_file = "hermes.key"\n'
    '[[tokens]]\nfile = "tokens/requester"\nprincipal = "agent:a:requester"\n'
)


def load(folder: Path, text: str) -> Settings:
    write_secret(folder / "hermes.key", "hermes-key-0123456789")
    return Settings.load(write_settings(folder / "aip-hermes.toml", BASE + text))


@pytest.mark.requirement("settings:operator:policy")
def test_the_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    assert load(tmp_path, "").operator == load(tmp_path, "[operator]\n").operator == OperatorPolicy()
    policy = OperatorPolicy()
    assert {name: getattr(policy, name) for name in BOUNDS} == {
        "timeout_ms": 900_000,
        "poll_interval_ms": 250,
        "max_events": 4_096,
        "max_input_bytes": 1_048_576,
        "max_delegation_depth": 16,
        "start_claim_ttl_ms": 60_000,
        "cancel_grace_ms": 15_000,
    }
    assert (policy.delegation_enabled, policy.delegation_requires_approval, policy.model) == (False, True, None)
    assert policy.system_instructions == DEFAULT_INSTRUCTIONS
    assert policy.allowed_capability_prefixes == policy.allowed_scope_prefixes == ()
    assert set(OperatorTable.model_fields) == set(OperatorPolicy.members())


@pytest.mark.requirement("settings:operator:policy")
def test_every_member_can_be_written(tmp_path: Path) -> None:
    text = """
[operator]
delegation_enabled = false
delegation_requires_approval = false
delegation_approval_exempt_capability_prefixes = ["cap:x:"]
model = "deep"
system_instructions = "Be brief."
timeout_ms = 60000
poll_interval_ms = 10
max_events = 1
max_input_bytes = 1024
max_delegation_depth = 128
start_claim_ttl_ms = 1000
cancel_grace_ms = 300000
allowed_capability_prefixes = ["*"]
allowed_scope_prefixes = ["action:"]
"""
    assert load(tmp_path, text).operator == OperatorPolicy(
        delegation_requires_approval=False,
        delegation_approval_exempt_capability_prefixes=("cap:x:",),
        model="deep",
        system_instructions="Be brief.",
        timeout_ms=60_000,
        poll_interval_ms=10,
        max_events=1,
        max_input_bytes=1_024,
        max_delegation_depth=128,
        start_claim_ttl_ms=1_000,
        cancel_grace_ms=300_000,
        allowed_capability_prefixes=("*",),
        allowed_scope_prefixes=("action:",),
    )


@pytest.mark.requirement("settings:operator:policy", "hermes:operator:policy")
@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_has_bounds(tmp_path: Path, name: str) -> None:
    least, most = BOUNDS[name]
    for fine in (least, most):
        assert getattr(load(tmp_path, f"[operator]\n{name} = {fine}\n").operator, name) == fine
    for outside in (least - 1, most + 1):
        with pytest.raises(SettingsError) as refused:
            load(tmp_path, f"[operator]\n{name} = {outside}\n")
        assert (refused.value.member, refused.value.line) == (f"operator.{name}", 9)


@pytest.mark.requirement("hermes:operator:policy")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("model", " "),
        ("system_instructions", "\n"),
        ("system_instructions", "é" * 65_537),
        ("allowed_capability_prefixes", (" ",)),
        ("allowed_scope_prefixes", ("x" * 513,)),
        ("delegation_approval_exempt_capability_prefixes", ("",)),
    ],
)
def test_a_text_has_rules(member: str, value: Any) -> None:
    with pytest.raises(OperatorPolicyInvalid) as refused:
        OperatorPolicy(**{member: value})
    assert refused.value.member == member


@pytest.mark.requirement("settings:operator:no-delegation")
def test_delegation_is_refused_when_the_settings_are_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, "[operator]\ndelegation_enabled = true\n")
    assert refused.value.member == "operator.delegation_enabled"
    assert "delegation peer" in refused.value.rule


@pytest.mark.requirement("settings:operator:policy", "settings:file:nearest-name")
def test_an_unknown_member_of_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, "[operator]\npoll_interval = 10\n")
    assert "poll_interval_ms" in refused.value.rule
