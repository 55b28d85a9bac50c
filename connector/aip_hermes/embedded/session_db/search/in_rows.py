"""Words that stand in the rows themselves, for an engine that has no index of words of its own making: PostgreSQL.

What a text and a word is, is decided here as it is for the other engine; the server keeps the words, finds rows by them
and looks at their order.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from aip_hermes.database.connection import Connection, Listed
from aip_hermes.embedded.session_db.columns import BYTES_MARK, JSON_MARK
from aip_hermes.embedded.session_db.json_text import json_value
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.search.language import All, Either, Node, Term, Without
from aip_hermes.embedded.session_db.search.matching import Condition, written_as
from aip_hermes.embedded.session_db.search.words import folded_words

__all__ = ["add_trigrams", "kept_with", "match_query", "patterns", "rewrite", "weighed", "words_condition"]

_KEY_CHARS: Final = 255
"""Longer words are known to the index by their beginning."""
_MOST_KEY_BYTES: Final = 900_000
"""An entry of the index holds a little more; of a text with more different words the order of words tells alone."""
_NOT_TEXT: Final = frozenset({"type", "data", "url", "image_url", "media_type"})
_SIGNS: Final = re.compile(r"[%_\\]")
_TRIGRAMS: Final = (
    "SELECT home.nspname AS home FROM pg_extension AS there JOIN pg_namespace AS home ON home.oid = there.extnamespace "
    "WHERE there.extname = 'pg_trgm'"
)
_TOTALS: Final = "SELECT COUNT(*) AS rows, COALESCE(SUM(word_total), 0) AS words FROM messages"
_HOLDING: Final = (
    "SELECT COUNT(*) AS rows FROM messages AS m "
    "WHERE (m.words @@ CAST(:match AS TSQUERY) OR m.words IS NULL) AND {condition}"
)
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_LEAST_WEIGHT: Final = 1e-6


def kept_with(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an insert: the content as a column of texts holds it, and all that a search reads."""
    calls_text = _calls_text(values["tool_calls"])
    typed, content_text = _typed(values["content"])
    texts = (
        typed if content_text is None else content_text,
        values["tool_name"],
        values["tool_calls"] if calls_text is None else calls_text,
    )
    return {**values, "content": typed, "content_text": content_text, "calls_text": calls_text, **_words(texts)}


def rewrite(connection: Connection, *, after: int, rows: int) -> int | None:
    """Take the words of the next rows from their texts again. Returns the last row id, None where there is no more."""
    last: int | None = None
    for row in connection.execute(QUERIES["rows_to_index"], {"after": after, "rows": rows}):
        kept = kept_with(row)
        connection.execute(QUERIES["index_texts"], kept)
        last = row["id"]
    return last


def add_trigrams(connection: Connection) -> bool:
    """Make an index of parts of words, where the server has the extension pg_trgm; False where it has not."""
    found = connection.execute(_TRIGRAMS)
    if not found:
        return False
    home = str(found[0]["home"]).replace('"', '""')
    lowered = QUERIES["lowered"].postgres
    connection.execute(
        f'CREATE INDEX IF NOT EXISTS messages_parts ON messages USING gin (({lowered}) "{home}".gin_trgm_ops)'
    )
    return True


def patterns(term: Term) -> list[str]:
    """Return what LIKE looks for where a term is a part of a text; its own signs stand for themselves."""
    return [f"%{_SIGNS.sub(lambda sign: chr(92) + sign[0], form)}%" for form in written_as(term.text)]


def match_query(node: Node) -> str | None:
    """Return what the index is asked: a query that every match fulfils. None where a term has no word to look up."""
    if any(not folded_words(term.text) for term in _all_terms(node)):
        return None
    return _match(node)


def words_condition(node: Node) -> Condition:
    """Return what is looked at in each row that the index names: the words in their order."""
    return Condition(node, contains="strpos(m.folded, :{parameter}) > 0", forms=_as_folded)


def weighed(connection: Connection, rows: Sequence[Mapping[str, Any]], node: Node) -> list[int]:
    """Return the ids of matches, the best fit first and then the newer; the weight is Okapi BM25, as FTS5 computes it.

    Of a text, the first 20,000 characters count.
    """
    terms = list(dict.fromkeys(_all_terms(node)))
    (totals,) = connection.execute(_TOTALS)
    average = (totals["words"] / totals["rows"] if totals["rows"] else 0) or 1.0
    # The rarity of a term weighs it against others; a single one needs none.
    weights = [1.0] if len(terms) == 1 else [_weight(totals["rows"], _rows_with(connection, term)) for term in terms]
    patterns = [
        re.compile(re.escape(form.rstrip()) + ("" if term.prefix else "(?= )"))
        for term in terms
        for form in _as_folded(term)
    ]

    def score(row: Mapping[str, Any]) -> float:
        spread = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * row["word_total"] / average)
        found = [len(pattern.findall(row["folded"])) for pattern in patterns]
        return float(sum(w * (n * (_SATURATION + 1) / (n + spread)) for w, n in zip(weights, found, strict=True)))

    return [-older for _, older in sorted((-score(row), -row["id"]) for row in rows)]


def _rows_with(connection: Connection, term: Term) -> int:
    condition = words_condition(term)
    asked = {"match": _match(term), **condition.parameters}
    return int(connection.execute(_HOLDING.replace("{condition}", condition.sql), asked)[0]["rows"])


def _weight(rows: int, holding: int) -> float:
    rarity = (rows - holding + 0.5) / (holding + 0.5)
    return math.log(rarity) if rarity > 1 else _LEAST_WEIGHT


def _typed(content: object) -> tuple[str | None, str | None]:
    """Return a content as a text, and the text that a person would look for where that is another one."""
    if content is None:
        return None, None
    if isinstance(content, bytes):
        return BYTES_MARK + base64.b64encode(content).decode("ascii"), ""
    if not isinstance(content, str):
        return JSON_MARK + json.dumps(content), _atom(content)
    if content.startswith(BYTES_MARK):
        return content, ""
    if content.startswith(JSON_MARK):
        text = content[len(JSON_MARK) :]
        value = json_value(text, default=text)
        if isinstance(value, int | float):
            return content, _atom(value)
        parts = _tree(value)
        return content, "\n".join(
            _atom(part) for name, part in parts if isinstance(part, str) and name not in _NOT_TEXT
        )
    return content, None


def _calls_text(calls: str | None) -> str | None:
    """Return names and values in calls whose JSON has escapes, else None: then the calls are their own text."""
    # Escaped quotes stand between words; every other escape has to be read.
    if calls is None or "\\" not in calls.replace('\\"', ""):
        return None
    return "\n".join(_named(name, _argument(value)) for name, value in _tree(json_value(calls, default=calls)))


def _argument(value: object) -> str:
    """Return a value as a text; one that is JSON itself, as arguments are, gives its own names and values."""
    if isinstance(value, str) and value.lstrip(" ").startswith(("[", "{")):
        inside = json_value(value)
        if inside is not None:
            return "\n".join(_named(name, _atom(part)) for name, part in _tree(inside))
    return _atom(value)


def _tree(value: object, name: str | None = None) -> Iterator[tuple[str | None, object]]:
    """Yield a value and all that is in it, each with the name that it has in an object."""
    ahead = [(name, value)]
    while ahead:
        name, value = ahead.pop()
        yield name, value
        if isinstance(value, Mapping):
            ahead += reversed(list(value.items()))
        elif isinstance(value, list):
            ahead += [(None, part) for part in reversed(value)]


def _named(name: str | None, text: str) -> str:
    return text if name is None else f"{name} {text}"


def _atom(value: object) -> str:
    match value:
        case str():
            return value.replace("\0", " ")
        case bool():
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            return ""


def _words(texts: Sequence[str | None]) -> dict[str, Any]:
    per_text = [[_plain(word) for word in folded_words(text or "")] for text in texts]
    different = sorted({word[:_KEY_CHARS] for words in per_text for word in words})
    size = sum(len(word.encode()) for word in different)
    return {
        "folded": "\n".join(f" {' '.join(words)} " for words in per_text),
        "words": Listed(different) if size <= _MOST_KEY_BYTES else None,
        "word_total": sum(map(len, per_text)),
    }


def _plain(word: str) -> str:
    # A few letters fold to several words, and one word they stay.
    return word.replace(" ", "_") if " " in word else word


def _as_folded(term: Term) -> list[str]:
    words = [_plain(word) for word in folded_words(term.text)]
    return [f" {' '.join(words)}{'' if term.prefix else ' '}"] if words else []


def _match(node: Node) -> str:
    match node:
        case Term(text, prefix):
            words = [_plain(word) for word in folded_words(text)]
            keys = [f"'{word[:_KEY_CHARS]}'" for word in words]
            if prefix:
                keys[-1] += ":*"
            return f"({' & '.join(keys)})"
        case All(parts):
            return f"({' & '.join(_match(part) for part in parts)})"
        case Either(parts):
            return f"({' | '.join(_match(part) for part in parts)})"
        case Without(kept, _):
            return _match(kept)


def _all_terms(node: Node) -> Iterator[Term]:
    match node:
        case Term():
            yield node
        case Without(kept, dropped):
            yield from chain.from_iterable(_all_terms(part) for part in (kept, *dropped))
        case All(parts) | Either(parts):
            yield from chain.from_iterable(_all_terms(part) for part in parts)
