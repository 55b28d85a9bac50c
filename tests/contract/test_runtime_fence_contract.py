"""Keys as a contract may declare them: every scope, every collision behaviour, whatever our own rows use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.contract import Catalog, Published
from aip_hermes.contract.handler import Offer
from aip_hermes.ids import CapabilityId, TenantId
from aip_hermes.runtime import Caller
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import READING, Site, action, ask, caller, error_code, requester


def declaring(**members: Any) -> Callable[[Sequence[Offer]], Catalog]:
    """Return what makes a catalogue whose contracts declare `members` of their idempotency."""

    class Declaring(Catalog):
        def find(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> Published | None:
            found = super().find(capability_id, tenant_id)
            if found is None or found.capability.contract is None:
                return found
            idempotency = found.capability.contract.idempotency.model_copy(update=members)
            contract = found.capability.contract.model_copy(update={"idempotency": idempotency})
            return replace(found, capability=found.capability.model_copy(update={"contract": contract}))

    return Declaring


OTHER = caller("agent:example:other", scopes=READING | {"action:read:any"})
ELSEWHERE = requester(tenant="tenant-b")


@pytest.mark.requirement("fence:scope:each")
@pytest.mark.parametrize(
    ("scope", "operation", "by", "shared"),
    [
        ("action", "session_create", requester(), False),
        ("capability", "session_create", requester(), True),
        ("capability", "session_create", OTHER, True),
        ("capability", "session_create", ELSEWHERE, False),
        ("capability", "session_patch", requester(), False),
        ("principal", "session_create", requester(), True),
        ("principal", "session_patch", requester(), True),
        ("principal", "session_create", OTHER, False),
        ("principal", "session_create", ELSEWHERE, False),
        ("tenant", "session_patch", OTHER, True),
        ("tenant", "session_create", ELSEWHERE, False),
    ],
)
async def test_a_key_means_something_within_its_scope_only(
    tmp_path: Path, scope: str, operation: str, by: Caller, shared: bool
) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(tenant=None), published=declaring(key_scope=scope))
    first = action(idempotency_key="K")
    second = action(operation, idempotency_key="K")
    if operation == "session_patch":
        second = second.model_copy(update={"input": {"session_id": "s1", "title": "t"}})
    async with site.open() as runtime:
        await site.submit(runtime, first)
        result = await site.submit(runtime, second, by)
    assert (result.status, result.action_id == first.id) == ("completed", shared)
    assert len(site.connector.sends) == (1 if shared else 2)


@pytest.mark.requirement("fence:scope:each")
@pytest.mark.parametrize(("scope", "tenant"), [("external_account", "tenant-a"), ("tenant", None)])
async def test_a_scope_that_the_call_does_not_have_is_refused(tmp_path: Path, scope: str, tenant: str | None) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(tenant=None), published=declaring(key_scope=scope))
    async with site.open() as runtime:
        result = await site.submit(runtime, action(idempotency_key="K"), requester(tenant=tenant))
    assert error_code(result) == "idempotency.scope_missing"
    assert site.connector.sends == []


@pytest.mark.requirement("fence:collision:declared")
@pytest.mark.parametrize(
    ("behaviour", "same_input", "refused"),
    [
        ("return_original_result", True, None),
        ("return_original_result", False, None),
        ("reject_conflict", True, "idempotency.conflict"),
        ("reject_conflict", False, "idempotency.conflict"),
        ("revalidate_input_hash", True, None),
        ("revalidate_input_hash", False, "idempotency.input_hash_mismatch"),
    ],
)
async def test_a_used_key_collides_as_its_contract_declares(
    tmp_path: Path, behaviour: str, same_input: bool, refused: str | None
) -> None:
    site = Site(tmp_path, published=declaring(collision_behavior=behaviour))
    first = action(idempotency_key="K")
    second = action(idempotency_key="K", input={"body": {"id": "s1" if same_input else "s2"}})
    async with site.open() as runtime:
        original = await site.submit(runtime, first)
        result = await site.submit(runtime, second)
        assert await site.submit(runtime, first) == original
    assert error_code(result) == refused
    if refused is None:
        assert result.action_id == first.id
    else:
        assert result.action_id == second.id
        assert result.error is not None
        assert result.error.details == {
            "key": "K",
            "original_action_id": first.id,
            "current_action_id": second.id,
        }
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("fence:collision:declared")
async def test_a_key_that_is_accepted_once_is_refused_while_its_action_waits_for_a_decision(tmp_path: Path) -> None:
    site = Site(tmp_path, published=declaring(collision_behavior="reject_conflict"))
    async with site.open() as runtime:
        await ask(site, runtime)
        second = action("session_delete", idempotency_key="D")
        result = await site.submit(runtime, second)
    assert (error_code(result), result.action_id) == ("idempotency.conflict", second.id)
