"""The published capabilities of endpoint `primary`, byte for byte.

After an intended change the file is written anew from the failing assertion's left side; the change belongs into the
changelog, since callers see it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aip_hermes.contract import publish
from aip_hermes.wire.schema import schema_violations
from tests.support.contract_offers import endpoint_offers, published_text

GOLDEN = Path(__file__).parent / "golden" / "capabilities_primary.json"


@pytest.mark.requirement("contract:published:form")
def test_the_published_capabilities_are_those_of_the_file() -> None:
    assert published_text() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.requirement("contract:published:form")
@pytest.mark.parametrize("offer", endpoint_offers(), ids=lambda offer: offer.handler.operation.name)
def test_a_published_capability_holds_under_the_protocol_s_schema(offer: object) -> None:
    assert schema_violations("capability", publish(offer).wire()) == []  # type: ignore[arg-type]


@pytest.mark.requirement("contract:published:form")
def test_the_members_stand_in_the_published_order() -> None:
    create = next(entry for entry in json.loads(published_text()) if entry["id"].endswith(":session_create"))

    assert list(create) == [
        "id", "name", "kind", "input_schema", "output_schema", "description", "risk", "stability", "auth", "bindings",
        "requires_human_approval", "contract",
    ]  # fmt: skip
    assert create["name"] == "Hermes Agent session creation (primary)"
    assert create["auth"] == {"scheme": "bearer", "source": "endpoint.api_key"}
    assert create["bindings"] == [
        {
            "profile": "aip.connector.hermes_agent.v1",
            "system": "hermes-agent",
            "endpoint_id": "primary",
            "operation": "session_create",
            "base_url": "http://127.0.0.1:8642/",
            "method": "POST",
            "path": "/api/sessions",
            "streaming": False,
        }
    ]


@pytest.mark.requirement("contract:published:form")
def test_only_health_needs_no_key() -> None:
    assert [entry["id"] for entry in json.loads(published_text()) if "auth" not in entry] == [
        "cap:hermes_agent:primary:health"
    ]
