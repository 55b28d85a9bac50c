"""Session titles: how they are cleaned, how long they may be, and how a lineage is numbered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["TITLE_MAX", "clean_title", "lineage_base", "next_lineage_title", "title_problem"]

TITLE_MAX: Final = 100
"""Code points of a title after cleaning."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffc\ufff9-\ufffb]")
_SPACES = re.compile(r"\s+")
_NUMBERED = re.compile(r"(?P<base>.*?) #(?P<number>\d{1,9})", re.DOTALL)


def clean_title(value: object) -> str | None:
    """Return the title as Hermes stores it, or None where it stores none.

    None clears; other kinds of JSON values become text first. Lone surrogates become U+FFFD; control characters but
    tab, LF and CR, and zero-width, bidirectional, annotation and object-replacement characters vanish; each run of
    white space becomes one space; the ends are trimmed. The length is not looked at: see title_problem.
    """
    if value is None:
        return None
    text = _SURROGATE.sub("\ufffd", value if isinstance(value, str) else str(value))
    text = _SPACES.sub(" ", _INVISIBLE.sub("", _CONTROL.sub("", text))).strip()
    return text or None


def title_problem(cleaned: str | None) -> str | None:
    """Say what is wrong with a cleaned title; None when it may be stored."""
    if cleaned is not None and len(cleaned) > TITLE_MAX:
        return f"Title too long ({len(cleaned)} chars, max {TITLE_MAX})"
    return None


def lineage_base(title: str) -> str:
    """Return `title` without a trailing ` #n`."""
    match = _NUMBERED.fullmatch(title)
    return match["base"] if match and match["base"] else title


def next_lineage_title(title: str, used: Iterable[str]) -> str:
    """Return the next free title of the lineage that `title` belongs to.

    used: titles of the store; those of other lineages are ignored. The bare title when it is free, else ` #k` with k
    one above the highest number in use, where the bare title counts as 1: the first continuation is ` #2`. May exceed
    TITLE_MAX; the caller checks.
    """
    base = lineage_base(title)
    highest = 0
    for other in used:
        if other == base:
            highest = max(highest, 1)
            continue
        match = _NUMBERED.fullmatch(other)
        if match and match["base"] == base:
            highest = max(highest, int(match["number"]))
    return base if highest == 0 else f"{base} #{highest + 1}"
