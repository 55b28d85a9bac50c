"""What an agent knows of its conversation between two turns, and when the store knows better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.embedded.agent.keeping import Keeper
from aip_hermes.embedded.session_db import TurnGround

__all__ = ["Memory"]


class Memory:
    """session_id: the row that the conversation is in. messages: so far. The newest row id and the number of rows tell
    whether somebody else has gone on with it meanwhile.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.messages: list[dict[str, Any]] = []
        self._newest: int | None = None
        self._stored = 0

    def recall(
        self, ground: TurnGround | None, waited: bool, given: Sequence[Mapping[str, Any]] | None
    ) -> Sequence[Mapping[str, Any]] | None:
        """Return what comes before the next question: the given history, else one's own; None: what is stored.

        ground: how the row stands, None without a store. waited: somebody else had the conversation until now.
        """
        if ground is not None and ground.exists and self._is_overtaken(ground, waited, given is not None):
            return None
        return self.messages if given is None else given

    def go_on(self, keeper: Keeper) -> None:
        """Remember the conversation as a turn left it, whichever way it ended."""
        self.session_id = keeper.session_id
        self.messages = keeper.messages
        self._newest, self._stored = keeper.newest, keeper.stored

    def _is_overtaken(self, ground: TurnGround, waited: bool, given: bool) -> bool:
        gone_on = (
            not given and self._newest is not None and (ground.newest, ground.messages) != (self._newest, self._stored)
        )
        return waited or gone_on or ground.session_id != self.session_id
