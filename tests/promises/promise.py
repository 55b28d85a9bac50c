"""The form of a promise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """One behaviour that users may rely on.

    id: `<room>:<subject>:<rule>`. source: the decision, page section, issue or field report that asks for it. sentence:
    what is true. diverges: how and why it differs from the reference, where it does.
    """

    id: str
    source: str
    sentence: str
    diverges: str | None = None
