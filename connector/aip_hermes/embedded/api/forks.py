"""The fork of release 0.19.0, for quirk `fork-not-atomic`: four steps, and a bad title comes last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.api.answers import Refusal
from aip_hermes.embedded.api.endpoint import FORK_CHILD_RESOLVES, Endpoint
from aip_hermes.embedded.session_db import SessionExists, UnknownSession

__all__ = ["fork_in_steps"]

_SOURCE: Final = "api_server"


async def fork_in_steps(endpoint: Endpoint, *, source_id: str, child_id: str, title: object) -> dict[str, Any]:
    """End the source, insert the child, copy, set the title, each on its own. Returns the child.

    Raises SessionExists before anything; TitleRefused when all but the title has happened.
    """
    if await endpoint.db.get_session(child_id) is not None:
        raise SessionExists(child_id)
    source = await _row(endpoint, source_id)
    try:
        return await _steps(endpoint, source, child_id=child_id, title=title)
    except StoreFailure:  # the code of a store that is not there would say that nothing happened
        raise Refusal(500, "The fork could not be completed") from None


async def _steps(endpoint: Endpoint, source: Mapping[str, Any], *, child_id: str, title: object) -> dict[str, Any]:
    db, source_id = endpoint.db, source["id"]
    await db.end_session(source_id, "branched")
    marked = FORK_CHILD_RESOLVES not in endpoint.quirks
    await db.create_session(
        child_id,
        _SOURCE,
        model=source["model"],
        model_config={"_branched_from": source_id} if marked else None,
        system_prompt=source["system_prompt"],
        parent_session_id=source_id,
    )
    await db.append_messages_batch(child_id, await db.get_messages(source_id))
    wanted = await db.get_next_title_in_lineage(source["title"] or "fork") if title is None else title
    await db.set_session_title(child_id, wanted)
    return await _row(endpoint, child_id)


async def _row(endpoint: Endpoint, session_id: str) -> dict[str, Any]:
    row = await endpoint.db.get_session(session_id)
    if row is None:
        raise UnknownSession(session_id)
    return row
