"""Whose text an answer holds, and whose text a delete ends (design D23).

Everything that an endpoint keeps by an id shares one kind of name: whoever deletes `s1` names it as every answer about
`s1` did, whatever the kinds of both calls were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aip_hermes.contract.handler import Traces
from aip_hermes.contract.operation import Operation
from aip_hermes.ids import EndpointId

__all__ = ["name_of", "traces_of"]


def name_of(endpoint_id: EndpointId, identity: str) -> str:
    """Return the name, unique over all connectors, of what an endpoint keeps under an id."""
    return f"hermes_agent:{endpoint_id}:{identity}"


def traces_of(
    operation: Operation,
    *,
    endpoint_id: EndpointId,
    ids: Mapping[str, str],
    session_id: str | None,
    output: Mapping[str, Any] | None,
) -> Traces:
    """Return the traces of a call.

    ids: of its path. session_id: that it names anywhere. output: None where there is none.
    """
    about: set[str] = set()
    if operation.text != "none":
        about = {*ids.values(), *([session_id] if session_id else []), *_answered(operation, output or {})}
    erases = set(ids.values()) if operation.method == "DELETE" else set()
    return Traces(
        about=frozenset(name_of(endpoint_id, each) for each in about),
        erases=frozenset(name_of(endpoint_id, each) for each in erases),
    )


def _answered(operation: Operation, output: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the answer names: its own id, its session, and where that moved to."""
    ours = output.get("_aip")
    session = ours.get("session") if isinstance(ours, Mapping) else None
    row = output.get("session")
    inner = row.get("id") if isinstance(row, Mapping) else None
    places: list[Any] = [output.get("id"), output.get("session_id"), inner]
    if isinstance(session, Mapping):
        places += [session.get("requested"), session.get("effective")]
    if operation.text == "listed":
        rows = output.get("data")
        places += [row.get("id") for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    yield from (place for place in places if isinstance(place, str) and place)
