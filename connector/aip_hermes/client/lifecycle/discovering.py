"""What a lifecycle needs of a server before its first step: who it is, and what the endpoint offers."""

from __future__ import annotations

from typing import Final

from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.lifecycle.failures import CapabilityMissing
from aip_hermes.client.lifecycle.states import Discovered
from aip_hermes.client.listings import Listed
from aip_hermes.ids import EndpointId

__all__ = ["discovered"]

_NEEDED: Final = (
    "session_chat",
    "session_create",
    "session_delete",
    "session_fork",
    "session_get",
    "session_messages",
    "session_patch",
    "sessions_list",
)
_STREAM: Final = "session_chat_stream"
"""Needed by `chat_stream` alone."""
_SCOPES: Final = frozenset({"action:write", "action:read"})


async def discovered(client: AipClient, *, endpoint: EndpointId) -> Discovered:
    """Ask the server. Raises: CapabilityMissing, naming what is missing; nothing is sent to the endpoint."""
    me = await client.me()
    prefix = f"cap:hermes_agent:{endpoint}:"
    found: dict[str, Listed] = {}
    cursor: str | None = None
    while True:
        page = await client.capabilities(cursor=cursor)
        for listed in page.capabilities:
            if listed.capability.id.startswith(prefix):
                found[listed.capability.id.removeprefix(prefix)] = listed
        cursor = page.next_cursor
        if cursor is None:
            break
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise CapabilityMissing(
            f"the server offers {me.principal_id} no {', '.join(missing)} of endpoint {endpoint}",
            next_step="compare the endpoint's name with `aipctl capability list`, and what the token may invoke",
            details={"missing": missing},
        )
    lacking = sorted(_SCOPES - me.scopes) if "*" not in me.scopes else []
    if lacking:
        raise CapabilityMissing(
            f"the token of {me.principal_id} lacks {', '.join(lacking)}",
            next_step="use a token with these scopes",
            details={"missing_scopes": lacking},
        )
    approval = found["session_delete"].capability.contract
    return Discovered(
        principal_id=me.principal_id,
        endpoint=endpoint,
        digests={name: found[name].contract_digest for name in (*_NEEDED, _STREAM) if name in found},
        delete_needs_approval=approval is not None and approval.approval is not None,
        streams=_STREAM in found,
    )
