"""What a person typed into a search, as a small tree that no engine has a hand in.

Words stand side by side and must all be there; `OR`, `NOT` and `AND` in capitals join them, a phrase stands in double
quotes, `word*` begins a word. NOT binds closest, then AND, then OR. Everything else in a word is text: `don't`, `a/b`,
`50%`. Whatever is typed has a meaning or none (None), and never raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["All", "Either", "Node", "Term", "Without", "has_cjk", "loosened", "parse", "terms"]

MAX_CHARS: Final = 2048
"""What comes after is not read."""

_PIECE = re.compile(r'"(?P<phrase>[^"]*)"(?P<open>\*?)|(?P<plain>[^"]+)|"')
_SPACE_LIKE = str.maketrans(dict.fromkeys("+{}():^\0", " "))
_STARS = re.compile(r"\*+")
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
# Han with its extensions A and B and the compatibility block, kana, Hangul, and their punctuation.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002a6df]"
)


@dataclass(frozen=True, slots=True)
class Term:
    """A text that must be there: a word, or words in this order. prefix: its last word may go on."""

    text: str
    prefix: bool = False

    @property
    def wordless(self) -> bool:
        """Whether there is no letter and no digit in it, so that no index of words knows it."""
        return not any(unicodedata.category(char)[0] in "LN" or _is_private(char) for char in self.text)


@dataclass(frozen=True, slots=True)
class All:
    """Every part."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """`kept`, and none of `dropped`."""

    kept: Node
    dropped: tuple[Node, ...]


Node: TypeAlias = Term | All | Either | Without


def parse(query: str) -> Node | None:
    """Return the meaning of a query; None where nothing is asked for: blank, or operators alone.

    Marks such as `?` or `-` between words are left out, and looked for where they are all there is.
    """
    tokens = list(_tokens(scrubbed(query[:MAX_CHARS])))
    if any(isinstance(token, Term) and not token.wordless for token in tokens):
        tokens = [token for token in tokens if isinstance(token, str) or not token.wordless]
    tokens = _joined_operators(tokens)
    return _either(tokens) if tokens else None


def terms(node: Node) -> Iterator[Term]:
    """Yield the terms that a hit may contain, in the order in which they were typed."""
    match node:
        case Term():
            yield node
        case Without(kept, _):
            yield from terms(kept)
        case All(parts) | Either(parts):
            for part in parts:
                yield from terms(part)


def loosened(node: Node) -> Node:
    """Return the same with any of its terms enough; what was excluded stays so."""
    match node:
        case Without(kept, dropped):
            return Without(loosened(kept), dropped)
        case Term():
            return node
        case _:
            return _one_or(Either, tuple(dict.fromkeys(terms(node))))


def has_cjk(node: Node) -> bool:
    """Tell whether a script without spaces between words is asked for, or ruled out."""
    match node:
        case Term(text, _):
            return _CJK.search(text) is not None
        case Without(kept, dropped):
            return any(has_cjk(part) for part in (kept, *dropped))
        case All(parts) | Either(parts):
            return any(has_cjk(part) for part in parts)


def _tokens(query: str) -> Iterator[Term | str]:
    """Yield terms, and operators as strings."""
    for piece in _PIECE.finditer(query):
        if piece["phrase"] is not None:
            text = " ".join(piece["phrase"].replace("\0", " ").split())
            if text:
                yield Term(text, prefix=bool(piece["open"]))
            continue
        for word in (piece["plain"] or "").translate(_SPACE_LIKE).split():
            if word in _OPERATORS:
                yield word
                continue
            starred = _STARS.sub("*", word).removeprefix("*")
            text = starred.removesuffix("*")
            if text:
                yield Term(text, prefix=starred != text)


def _joined_operators(tokens: Sequence[Term | str]) -> list[Term | str]:
    """Leave out operators at the ends; of several in a row keep NOT, else the last."""
    kept: list[Term | str] = []
    for token in tokens:
        if isinstance(token, Term):
            kept.append(token)
        elif kept:
            if isinstance(kept[-1], str):
                token = "NOT" if "NOT" in (kept[-1], token) else token
                kept.pop()
            kept.append(token)
    while kept and isinstance(kept[-1], str):
        kept.pop()
    return kept


def _either(tokens: Sequence[Term | str]) -> Node:
    return _one_or(Either, tuple(_all(part) for part in _split(tokens, "OR")))


def _all(tokens: Sequence[Term | str]) -> Node:
    return _one_or(All, tuple(_without(part) for part in _split(tokens, "AND")))


def _without(tokens: Sequence[Term | str]) -> Node:
    kept, *dropped = (_one_or(All, tuple(t for t in part if isinstance(t, Term))) for part in _split(tokens, "NOT"))
    return Without(kept, tuple(dict.fromkeys(dropped))) if dropped else kept


def _split(tokens: Sequence[Term | str], operator: str) -> list[list[Term | str]]:
    parts: list[list[Term | str]] = [[]]
    for token in tokens:
        if token == operator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _one_or(kind: type[All] | type[Either], parts: tuple[Node, ...]) -> Node:
    # Said twice means no more, and each term costs a look at each row.
    different = tuple(dict.fromkeys(parts))
    return different[0] if len(different) == 1 else kind(different)


def _is_private(char: str) -> bool:
    return unicodedata.category(char) == "Co"
