"""Which tools an agent in a program of its own is offered."""

from __future__ import annotations

from collections.abc import Iterable

from aip_hermes.embedded.agent.recall.tool import TOOLSET as RECALL
from aip_hermes.embedded.agent.recall.tool import SessionSearchTool
from aip_hermes.embedded.agent.toolbox import Toolbox, ToolRegistry
from aip_hermes.embedded.agent.tools import command_registry
from aip_hermes.embedded.session_db import GrantStore, SessionDB
from aip_hermes.embedded.session_db.store_file import default_path
from aip_hermes.ports import Clock

__all__ = ["offered_tools"]


def offered_tools(
    own: ToolRegistry | None,
    *,
    enabled: Iterable[str] | None,
    disabled: Iterable[str] | None,
    db: SessionDB | None,
    asks: bool,
    clock: Clock,
) -> Toolbox:
    """Return the user's own tools and the built-in ones, as the toolsets choose.

    Where nothing is enabled by name, `session_search` is offered only where there is something to search: a store, or
    the folder of the default one. asks: there is somebody to decide about commands. Raises ValueError for a toolset
    that there is none of and for a name that is taken.
    """
    registry = own or ToolRegistry()
    recall = ToolRegistry()
    recall.add(SessionSearchTool(), toolset=RECALL)
    registry = registry.joined(recall)
    if asks and db is not None:
        registry = registry.joined(command_registry(GrantStore(db, clock=clock)))
    if enabled is None and db is None and not default_path().parent.is_dir():
        enabled = registry.toolsets.keys() - {RECALL}
    return registry.chosen(enabled, disabled)
