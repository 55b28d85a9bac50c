"""Envelopes with one member replaced by anything: the answer is an envelope, and never a fault of the server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aip_hermes import wire
from tests.support.server_site import Site, action_message, make_site, message

PRINCIPAL = {"id": "human:a:reviewer", "kind": "human"}
TEMPLATES = (
    {**action_message(session_id="sess_1", correlation_id="corr_1"), "from": PRINCIPAL},
    message(
        {
            "approval_decision": {
                "approval_id": "appr_1",
                "decision": "denied",
                "approver": PRINCIPAL,
                "decided_at": "2030-01-01T00:00:00Z",
            }
        }
    ),
    message({"action_status_request": {"action_id": "act_1", "wait_ms": 3}}),
    message({"approval_list_request": {"status": "pending", "approver": "human:x", "limit": 3, "cursor": "offset:0"}}),
    message({"manifest_request": {"filter": {"risk": ["high"], "requires_approval": True}}}),
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["act_", "msg_x", "sess_", "tenant-b", "2030-01-01T00:00:00Z", "offset:-1", "\x00", "high"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abfromidkind_", max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += places(inner, (*path, name))
    return found


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    envelope: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(TEMPLATES)))
    envelope["message_id"] = f"msg_{draw(st.uuids()).hex}"
    *parents, last = draw(st.sampled_from(places(envelope)))
    holder: Any = envelope
    for name in parents:
        holder = holder[name]
    if draw(st.booleans()):
        holder[last] = draw(ANYTHING)
    else:
        del holder[last]
    return envelope


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.mark.requirement("server:body:one-meaning", "server:wire:schemas")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(envelope=mutated())
async def test_a_mutated_envelope_is_answered_by_an_envelope(site: Site, envelope: dict[str, Any]) -> None:
    response = await site.post(envelope)
    answer = json.loads(response.content)
    assert wire.envelope_violations(answer) == []
    assert response.status_code in (200, 400, 401)
    if response.status_code != 200:
        assert answer["message_type"] == "aip.core.v1.error"
