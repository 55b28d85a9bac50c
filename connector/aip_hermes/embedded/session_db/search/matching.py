"""A tree of terms in the words of an engine: an expression for SQLite's index of words, a condition on plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aip_hermes.embedded.session_db.search.language import All, Either, Node, Term, Without

__all__ = ["LOWER", "Condition", "match_expression", "written_as"]

LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def match_expression(node: Node) -> str:
    """Return the expression for MATCH. Every term is quoted, so that nothing in it is an operator."""
    match node:
        case Term(text, prefix):
            return f'"{text}"{" *" if prefix else ""}'
        case All(parts):
            return " AND ".join(_grouped(part) for part in parts)
        case Either(parts):
            return " OR ".join(_grouped(part) for part in parts)
        case Without(kept, dropped):
            return f"{_grouped(kept)} NOT ({' OR '.join(_grouped(part) for part in dropped)})"


class Condition:
    """SQL on lower-cased text, and its parameters: terms as substrings, phrases to the letter.

    contains: SQL that tells whether the parameter `{parameter}` is in the text. forms: what to look for there, any of
    which will do; where there is nothing to look for, a term is fulfilled.
    """

    def __init__(self, node: Node, *, contains: str, forms: Callable[[Term], Sequence[str]] | None = None) -> None:
        self.parameters: dict[str, str] = {}
        self._forms = forms or (lambda term: written_as(term.text))
        self._contains_sql = contains
        self.sql = self._of(node)

    def _of(self, node: Node) -> str:
        match node:
            case Term():
                return _balanced([self._contains(form) for form in self._forms(node)] or ["TRUE"], "OR")
            case All(parts):
                return _balanced([self._of(part) for part in parts], "AND")
            case Either(parts):
                return _balanced([self._of(part) for part in parts], "OR")
            case Without(kept, dropped):
                return f"({self._of(kept)} AND NOT {_balanced([self._of(part) for part in dropped], 'OR')})"

    def _contains(self, text: str) -> str:
        name = f"text_{len(self.parameters)}"
        self.parameters[name] = text
        return self._contains_sql.replace("{parameter}", name)


def written_as(text: str) -> list[str]:
    """Return the spellings to look for in lower-cased text; the engine's `lower` knows the letters of ASCII alone."""
    if text.isascii():
        return [text.translate(LOWER)]
    forms = (text, text.lower(), text.upper(), text.capitalize())
    return list(dict.fromkeys(form.translate(LOWER) for form in forms))


def _grouped(node: Node) -> str:
    return match_expression(node) if isinstance(node, Term) else f"({match_expression(node)})"


def _balanced(parts: Sequence[str], operator: str) -> str:
    """Join as a balanced tree: the engine bounds the depth of an expression, not its width."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_balanced(parts[:half], operator)} {operator} {_balanced(parts[half:], operator)})"
