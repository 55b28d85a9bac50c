"""The tool `session_search`: arguments in, a JSON text out, and never an exception for what a store refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.database import StoreFailure, StoreRefused
from aip_hermes.embedded.agent.recall.asked import DEFINITION, NAME, Asked
from aip_hermes.embedded.agent.recall.discovering import discover
from aip_hermes.embedded.agent.recall.reading import RecallRefused, browse, read, scroll
from aip_hermes.embedded.agent.toolbox import ToolContext, ToolOutcome
from aip_hermes.embedded.session_db import SessionDB

__all__ = ["TOOLSET", "SessionSearchTool"]

TOOLSET: Final = "session_search"


class SessionSearchTool:
    """Searches the store of the turn's conversation, or the default one where it has none."""

    name: Final = NAME
    definition: Final[Mapping[str, Any]] = DEFINITION

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Return `{success, mode, …}` as JSON; `{error, success: false}` for what can't be had."""
        asked = Asked.of(arguments)
        try:
            db = context.session_db or await context.store()
            answer = await _answer(db, asked, current=context.session_id or None)
        except RecallRefused as refusal:
            return _failure(str(refusal))
        except StoreRefused as failure:
            return _failure(f"{failure}. Whoever runs the agent gives it a store of its own with session_db=.")
        except (StoreFailure, RuntimeError) as failure:
            return _failure(f"The session store is not available: {failure}")
        return ToolOutcome(output=_json({"success": True, "mode": asked.mode} | answer), failed=False)


async def _answer(db: SessionDB, asked: Asked, *, current: str | None) -> dict[str, Any]:
    match asked.mode:
        case "scroll":
            return await scroll(db, asked, current=current)
        case "read":
            return await read(db, asked)
        case "browse":
            return await browse(db, asked, current=current)
        case "discover":
            return await discover(db, asked, current=current)


def _failure(message: str) -> ToolOutcome:
    return ToolOutcome(output=_json({"error": message, "success": False}), failed=True)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
