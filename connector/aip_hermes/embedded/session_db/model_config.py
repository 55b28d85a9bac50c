"""The configuration that a row keeps as JSON text, and the markers in it that say how a row hangs on its parent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.json_text import json_text, json_value

__all__ = ["config_of", "config_text", "edge_of", "merged_config", "patched_config"]

_RESET: Final = "_reset_from"


def config_of(text: str | None) -> dict[str, Any]:
    """Return the object that a row holds; an empty one where it holds none."""
    value = json_value(text) if text else {}
    return value if isinstance(value, dict) else {}


def config_text(config: Mapping[str, Any] | str | None) -> str | None:
    """Return what is stored: nothing for an empty object."""
    if not config:
        return None
    return scrubbed(config if isinstance(config, str) else json_text(config))


def patched_config(stored: str | None, patch: Mapping[str, Any]) -> str | None:
    """Return the stored one with the members of a patch; None takes a member away."""
    members = config_of(stored) | dict(patch)
    return config_text({name: value for name, value in members.items() if value is not None})


def merged_config(stored: str | None, given: str | None) -> str | None:
    """Return the stored one where there is one; one that holds the mark of a reset alone takes the given one in."""
    if stored is None or given is None:
        return stored or given
    kept = config_of(stored)
    if set(kept) == {_RESET}:
        return config_text(config_of(given) | kept)
    return stored


def edge_of(config: str | None, *, parent: str | None) -> str | None:
    """Return the kind of edge that the markers name: branch, delegate, reset, or None.

    A branch of a subagent's row is a person's: it must not go with the subagent. The mark of a reset names the row that
    was left; a later segment of the conversation inherits it, and hangs on another row.
    """
    markers = config_of(config)
    if markers.get("_branched_from"):
        return "branch"
    if markers.get("_delegate_from"):
        return "delegate"
    left = markers.get(_RESET)
    return "reset" if left and (parent is None or left in (parent, True)) else None
