"""How a turn behaves where release 0.19.0 and we differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["RIGHT", "Habits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Habits:
    """One habit for each quirk of a turn; without the habit the turn does what 0.19.0 does.

    follows_compression: the turn of a compressed row runs on its tip; else on the row itself, with its full history.
    one_at_a_time: turns of one session follow each other; else each runs at once on the history that it finds.
    admits_failure: a failed model, an unreadable history and a reply that was not stored are failures; else the turn
    ends as if it had gone well, with a text about the model's failure, on an empty history, or with the reply.
    """

    follows_compression: bool = True
    one_at_a_time: bool = True
    admits_failure: bool = True


RIGHT: Final = Habits()
