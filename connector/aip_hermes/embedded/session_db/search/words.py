"""Words of a text as an index of words sees them: letters and digits in a row, without case and accents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from aip_hermes.embedded.session_db.search.language import All, Either, Node, Term, Without

__all__ = ["fits", "folded_words", "places", "word_spans"]

_WORD: Final = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_ASCII_WORD: Final = re.compile(r"[A-Za-z0-9]+")
"""The same where a text has nothing else, in half the time."""


def fits(node: Node, texts: Sequence[Sequence[str]]) -> bool:
    """Tell whether the words of a row, text by text, are what is asked for; marks that are no words don't count."""
    match node:
        case Term(text, prefix):
            term = folded_words(text)
            return not term or any(True for words in texts for _ in places(words, term, prefix=prefix))
        case All(parts):
            return all(fits(part, texts) for part in parts)
        case Either(parts):
            return any(fits(part, texts) for part in parts)
        case Without(kept, dropped):
            return fits(kept, texts) and not any(fits(part, texts) for part in dropped)


def places(words: Sequence[str], term: Sequence[str], *, prefix: bool) -> Iterable[int]:
    """Yield where the words of a term stand in a row. The last one may go on where it is a prefix."""
    head, last = list(term[:-1]), term[-1]
    if not prefix and last not in words:
        return
    for at in range(len(words) - len(head)):
        word = words[at + len(head)]
        if (word.startswith(last) if prefix else word == last) and (not head or words[at : at + len(head)] == head):
            yield at


def folded_words(text: str) -> list[str]:
    """Return the words of a text as they are compared."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [_folded(word) for word in _WORD.findall(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where each word of a text begins and ends."""
    return [word.span() for word in (_ASCII_WORD if text.isascii() else _WORD).finditer(text)]


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else "".join(map(_folded_letter, word))


@lru_cache(maxsize=4096)
def _folded_letter(char: str) -> str:
    """Return a letter without case, and without accents where it is one of A to Z below them, as FTS5 folds it."""
    if unicodedata.combining(char):
        return ""
    folded = next((one for one in (char.casefold(), char.lower()) if len(one) == 1), char)
    base = unicodedata.normalize("NFD", folded)[0]
    return base.lower() if base.isascii() else folded
