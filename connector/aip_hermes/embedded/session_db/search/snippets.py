"""The part of a text that shows why it was found. The same on every engine, and read no further than needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from aip_hermes.embedded.session_db.search.language import Term
from aip_hermes.embedded.session_db.search.matching import LOWER, written_as
from aip_hermes.embedded.session_db.search.words import folded_words, places, word_spans

__all__ = ["excerpt", "marked_snippet"]

BEGIN, END, CUT = ">>>", "<<<", "..."
WORDS: Final = 40
EXCERPT_CHARS: Final = 120
BEFORE_CHARS: Final = 40

_READ_CHARS: Final = 65_536
_LOOKED_FOR: Final = 32
_LOOKED_AT: Final = 200


def marked_snippet(texts: Sequence[str | None], terms: Iterable[Term]) -> str:
    """Return at most 40 words of the text with the most different terms, each match between `>>>` and `<<<`, `...`
    where something was cut. Of a text, the first 65,536 characters are read.
    """
    wanted = [(folded_words(term.text), term.prefix) for term in islice(terms, _LOOKED_FOR)]
    best, best_score = "", -1
    for text in texts:
        if text:
            snippet, score = _snippet(text, [(words, prefix) for words, prefix in wanted if words])
            if score > best_score:
                best, best_score = snippet, score
    return best


def excerpt(texts: Sequence[str | None], terms: Iterable[Term]) -> str:
    """Return 120 characters from 40 before the first match of a term as plain text; of no match, the beginning."""
    forms = [form for term in terms for form in written_as(term.text)]
    present = [text for text in texts if text]
    for text in present:
        lowered = text.translate(LOWER)
        places = [place for form in forms if (place := lowered.find(form)) >= 0]
        if places:
            start = max(0, min(places) - BEFORE_CHARS)
            return text[start : start + EXCERPT_CHARS]
    return present[0][:EXCERPT_CHARS] if present else ""


def _snippet(text: str, wanted: Sequence[tuple[list[str], bool]]) -> tuple[str, int]:
    read = text[:_READ_CHARS]
    spans = word_spans(read)
    compared = folded_words(read)
    # (first word, word after the last, which term)
    matches = [(at, at + len(term), which) for which, (term, prefix) in enumerate(wanted)
               for at in places(compared, term, prefix=prefix)]  # fmt: skip
    matches = sorted(matches)[:_LOOKED_AT]
    first, score = _best_window(matches, len(spans))
    last = min(first + WORDS, len(spans))
    start = spans[first][0] if first else 0
    end = spans[last][0] if last < len(spans) else len(read)
    pieces, at = [], start
    for begin, after in _runs([(b, a) for b, a, _ in matches if b >= first and a <= last]):
        opened, closed = spans[begin][0], spans[after - 1][1]
        pieces += [text[at:opened], BEGIN, text[opened:closed], END]
        at = closed
    pieces.append(text[at:end].rstrip() if last < len(spans) else text[at:end])
    cut_end = last < len(spans) or end < len(text)
    return f"{CUT if first else ''}{''.join(pieces)}{CUT if cut_end else ''}", score


def _best_window(matches: Sequence[tuple[int, int, int]], total: int) -> tuple[int, int]:
    """Return the first word of the window with the most different terms, and how many those are."""
    best_first, best = 0, len({which for _, after, which in matches if after <= WORDS})
    for begin, _, _ in matches:
        first = max(0, min(begin - 4, total - WORDS))
        inside = len({which for b, after, which in matches if b >= first and after <= first + WORDS})
        if inside > best:
            best_first, best = first, inside
    return best_first, best


def _runs(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch or overlap."""
    runs: list[tuple[int, int]] = []
    for begin, after in sorted(spans):
        if runs and begin < runs[-1][1]:
            runs[-1] = (runs[-1][0], max(after, runs[-1][1]))
        else:
            runs.append((begin, after))
    return runs
