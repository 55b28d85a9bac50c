"""How the embedded endpoint answers differently from hermes-agent 0.19.0, place by place, and why that stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["KNOWN", "ONLY_WITH_QUIRKS", "Difference"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """step, place: patterns of the steps and the members where it shows. quirk: the name of the behaviour of 0.19.0
    with which it is gone; None: with none.
    """

    step: str
    place: str
    reason: str
    quirk: str | None = None

    def explains(self, step: str, place: str) -> bool:
        return re.fullmatch(self.step, step) is not None and re.fullmatch(self.place, place) is not None


_ANY_ROW: Final = r"(get: after turns|fork.*|delete: its child has no parent now)"
_FAILED: Final = "the embedded one tells a failed model by its status: 502 with model_failed"


def _quirks() -> Iterator[Difference]:
    """Yield what 0.19.0 does and a client must survive: gone where it is asked for by name."""
    half = "0.19.0 ends the source and makes the child before it checks the title; the embedded one does all or nothing"
    source = r"body\.session\.(end_reason|ended_at)"
    yield Difference(step="fork: its source after a title in use", place=source, reason=half, quirk="fork-not-atomic")
    yield Difference(
        step="fork: its child after a title in use",
        place=r"status|body\.(error|object|session)",
        reason=half,
        quirk="fork-not-atomic",
    )
    yield Difference(
        step="fork: the source's rows",
        place=r"body\.session_id|body\.data\[\d\]\.session_id",
        reason="0.19.0 answers for a forked source with the rows of its newest child",
        quirk="fork-child-resolves",
    )
    yield Difference(
        step="fork: an id with a slash",
        place=r"status|body\.(error|object|session)",
        reason="0.19.0 takes for a fork what it refuses to create",
        quirk="unchecked-fork-id",
    )
    yield Difference(
        step="chat: the model fails",
        place=r"status|body\.(error|object|session_id|message|usage)",
        reason=_FAILED,
        quirk="answers-on-failure",
    )
    yield Difference(
        step="stream: the model fails",
        place=r"body\.(order|error 1|assistant\.completed 1|run\.completed 1)",
        reason="a stream of the embedded one ends with an error where the model failed, one of 0.19.0 as any other",
        quirk="answers-on-failure",
    )


def _lasting() -> Iterator[Difference]:
    yield Difference(
        step="create: a long title",
        place="status|type|body",
        reason="0.19.0 fails with a plain 500 where patch and fork answer 400 invalid_title, as the embedded one does",
    )
    yield Difference(
        step="job: bad schedule",
        place="status",
        reason="0.19.0 answers 500 to a mistake of the client, the embedded one 400",
    )
    yield Difference(
        step="completions: a list",
        place="status|type|body",
        reason="0.19.0 fails with a plain 500 on a body that is a list, the embedded one answers 400",
    )
    yield Difference(
        step="responses: the model fails",
        place=r"status|body\.(created_at|error|id|model|object|output|status|usage)",
        reason=_FAILED + "; 0.19.0 answers as completed. The quirk is about chats alone",
    )
    yield Difference(
        step="completions: the model fails",
        place=r"status|body\.(choices|created|error|hermes|id|model|object|usage)",
        reason=_FAILED + "; the quirk is about chats alone",
    )
    yield Difference(
        step=_ANY_ROW,
        place=r"body\.session\.(model|has_system_prompt)",
        reason="the first turn of 0.19.0 puts its own prompt and model in the place of what a caller stored; the "
        "embedded one keeps what was stored",
    )
    yield Difference(
        step=_ANY_ROW,
        place=r"body\.session\.(has_model_config|estimated_cost_usd)",
        reason="a turn of 0.19.0 stores a configuration and an estimate of its cost; the embedded one has neither",
    )
    yield Difference(
        step=r"(messages|fork).*",
        place=r"body\.data\[\d\]\.token_count",
        reason="the embedded one stores how many tokens a reply took, 0.19.0 leaves it open",
    )
    yield Difference(
        step=r"job: (create|get|patch|pause|resume)",
        place=r"body\.job\.(model_snapshot|provider_snapshot)",
        reason="the embedded one has no providers, and a job takes the advertised model",
    )
    yield from _unknown_tools()


def _unknown_tools() -> Iterator[Difference]:
    step = "(messages|stream): an unknown tool"
    yield Difference(
        step=step,
        place=r"body\..*tool_calls\[0\]\.response_item_id",
        reason="a second id for one interface of models, which the embedded one does not speak",
    )
    yield Difference(
        step=step,
        place=r"body\.(data\[2\]|run\.completed 1\.messages\[1\])\.(content|tool_name)",
        reason="what is said of a tool that does not exist is each endpoint's own; the embedded one names the tool",
    )
    yield Difference(
        step=step,
        place=r"body\.(order|tool\.(started|completed) 1)",
        reason="0.19.0 tells of no call of a tool that does not exist; the embedded one tells of every call",
    )


def _texts() -> Iterator[Difference]:
    yield Difference(
        step="(chat|stream): the model fails",
        place=r"body\.(message|assistant\.completed 1)\.content",
        reason="the text about the failure is each endpoint's own; 0.19.0 repeats what the model's server said",
    )


KNOWN: Final = (*_quirks(), *_lasting())
"""What shows without quirks."""

ONLY_WITH_QUIRKS: Final = tuple(_texts())
"""What shows with them alone, in an answer that is another one without."""
