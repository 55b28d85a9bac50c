"""Finds a text in what is said of thousands of offers without looking at each.

What is said of an offer are its row's words around a few of its endpoint's: id and display name. So a text is looked
for in the words of each row once, for all endpoints; in the words of each endpoint once, for all rows; and in the whole
sentence of an offer only where the text may lie across the seam between the two.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from aip_hermes.ids import TenantId

__all__ = ["Index", "Matches"]

_Lists = dict[TenantId | None, list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """Keys that fit a query, as sorted lists without a key in common. total: of all lists."""

    lists: Sequence[Sequence[str]]
    total: int

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]]) -> Matches:
        return cls(lists=lists, total=sum(map(len, lists)))

    def behind(self, after: str | None, count: int) -> list[str]:
        """Return the first `count` keys in order, behind `after` where it is given."""
        starts = [0 if after is None else bisect_right(keys, after) for keys in self.lists]
        rests = (islice(keys, start, start + count) for keys, start in zip(self.lists, starts, strict=True))
        return list(islice(heapq.merge(*rests), count))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """Sentences that differ in their endpoint's words only. fixed: what stands around these, in order."""

    fixed: tuple[str, ...]
    keys: _Lists = field(default_factory=lambda: defaultdict(list))

    def says(self, wanted: str) -> bool:
        return any(wanted in text for text in self.fixed)


class Index:
    """What is said of each key, and to whom.

    sentence: what is said of a key, case-folded; asked again only for keys at a seam. tenant: to whom it is said; None:
    to everyone. Keys are added in order.
    """

    def __init__(self, *, sentence: Callable[[str], str], tenant: Callable[[str], TenantId | None]) -> None:
        self._sentence = sentence
        self._tenant = tenant
        self._everything: _Lists = defaultdict(list)
        self._rows: dict[tuple[str, ...], _Row] = {}
        self._row_of: dict[str, _Row] = {}
        self._keys_of: dict[str, list[str]] = defaultdict(list)
        self._splitting: tuple[frozenset[str], list[str]] = (frozenset(), [])
        self._words: list[str] = []
        self._reversed: list[str] = []

    def add(self, key: str, *, sentence: str, words: frozenset[str], tenant_id: TenantId | None) -> None:
        """words: of the endpoint, case-folded, none of them empty."""
        if self._splitting[0] != words:
            self._splitting = words, sorted(words, key=len, reverse=True)
        fixed, said = _split(sentence, self._splitting[1])
        row = self._rows.get(fixed)
        if row is None:
            row = self._rows[fixed] = _Row(fixed=fixed)
        row.keys[tenant_id].append(key)
        self._everything[tenant_id].append(key)
        self._row_of[key] = row
        for word in said:
            self._keys_of[word].append(key)

    def complete(self) -> None:
        """Make ready for queries: nothing is added any more."""
        self._words = sorted(self._keys_of)
        self._reversed = sorted(word[::-1] for word in self._words)

    def visible(self, tenant_id: TenantId | None) -> Matches:
        """Return what `tenant_id` sees: its own and the unbound; None sees only the latter."""
        return Matches.of(_seen(self._everything, tenant_id))

    def containing(self, wanted: str, tenant_id: TenantId | None) -> Matches:
        """Return what `tenant_id` sees of the keys whose sentence contains `wanted`, which is case-folded."""
        whole = {id(row) for row in self._rows.values() if row.says(wanted)}
        found = {
            key
            for word in self._words
            if wanted in word
            for key in self._keys_of[word]
            if id(self._row_of[key]) not in whole
        }
        for row in self._rows.values():
            if id(row) not in whole:
                found.update(self._across(row, wanted))
        lists = [keys for row in self._rows.values() if id(row) in whole for keys in _seen(row.keys, tenant_id)]
        single = sorted(key for key in found if self._tenant(key) in (None, tenant_id))
        return Matches.of([*lists, single])

    def _across(self, row: _Row, wanted: str) -> Iterator[str]:
        """Yield the row's keys whose sentence has `wanted` over a seam."""
        for word in self._at_seams(row.fixed, wanted):
            for key in self._keys_of[word]:
                if self._row_of[key] is row and wanted in self._sentence(key):
                    yield key

    def _at_seams(self, fixed: tuple[str, ...], wanted: str) -> set[str]:
        """Return the endpoints' words beside which `wanted` may lie over a seam."""
        words: set[str] = set()
        for before in fixed[:-1]:
            for cut in range(1, len(wanted)):
                if _one_ends(before, wanted[:cut]):
                    words.update(self._beginning(wanted[cut:], self._words))
        for behind in fixed[1:]:
            for cut in range(1, len(wanted)):
                if _one_begins(behind, wanted[cut:]):
                    words.update(word[::-1] for word in self._beginning(wanted[:cut][::-1], self._reversed))
        return words

    def _beginning(self, text: str, words: Sequence[str]) -> Iterator[str]:
        """Yield those of the sorted `words` that `text` begins, and those that begin it."""
        for word in islice(words, bisect_left(words, text), None):
            if not word.startswith(text):
                break
            yield word
        for size in range(1, len(text)):
            place = bisect_left(words, text[:size])
            if place < len(words) and words[place] == text[:size]:
                yield words[place]


def _split(sentence: str, words: Sequence[str]) -> tuple[tuple[str, ...], set[str]]:
    """Return what `sentence` says between the words, and which of them it says; where two overlap, the earlier given.

    No regular expression: each endpoint would compile its own, at a hundred times the cost of a split.
    """
    fixed, said = [sentence], set()
    for word in words:
        pieces = [piece for part in fixed for piece in part.split(word)]
        if len(pieces) > len(fixed):
            fixed = pieces
            said.add(word)
    return tuple(fixed), said


def _seen(lists: _Lists, tenant_id: TenantId | None) -> list[list[str]]:
    return [lists[tenant] for tenant in dict.fromkeys((None, tenant_id)) if tenant in lists]


def _one_ends(one: str, other: str) -> bool:
    return one.endswith(other) or other.endswith(one)


def _one_begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
