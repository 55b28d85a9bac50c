"""What a query means, and which part of a text shows it."""

from __future__ import annotations

import pytest

from aip_hermes.embedded.session_db.search.language import All, Either, Node, Term, Without, loosened, parse
from aip_hermes.embedded.session_db.search.snippets import excerpt, marked_snippet
from aip_hermes.embedded.session_db.search.words import fits, folded_words

A, B, C = Term("a"), Term("b"), Term("c")


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ("a", A),
        ("a b", All((A, B))),
        ("a AND b", All((A, B))),
        ("a OR b c", Either((A, All((B, C))))),
        ("a a b a", All((A, B))),
        ("a b OR c OR a b OR c", Either((All((A, B)), C))),
        ("a OR a", A),
        ("a NOT b NOT b", Without(A, (B,))),
        ("a NOT b NOT c", Without(A, (B, C))),
        ("a NOT b c", Without(A, (All((B, C)),))),
        ("a NOT b OR c", Either((Without(A, (B,)), C))),
        ("NOT a OR", A),
        ("a AND OR b", Either((A, B))),
        ("a OR NOT b", Without(A, (B,))),
        ("a and b", All((A, Term("and"), B))),
        ('"a  b" c', All((Term("a b"), C))),
        ('"a b"* c*', All((Term("a b", prefix=True), Term("c", prefix=True)))),
        ('a "b', All((A, B))),
        ('a"b"c', All((A, B, C))),
        ("**a** a*b", All((Term("a", prefix=True), Term("a*b")))),
        ("a:b+(c)^", All((A, B, C))),
        ("a - b ?", All((A, B))),
        ("- ?", All((Term("-"), Term("?")))),
        ("a\0b", All((A, B))),
        ("", None),
        ("AND NOT", None),
        ('"" * ()', None),
    ],
)
@pytest.mark.requirement("search:query:as-typed")
def test_queries_and_their_meaning(query: str, meaning: Node | None) -> None:
    assert parse(query) == meaning


@pytest.mark.requirement("search:query:as-typed")
def test_loosened_keeps_what_was_ruled_out() -> None:
    assert loosened(All((A, B, A))) == Either((A, B))
    assert loosened(Without(All((A, B)), (C,))) == Without(Either((A, B)), (C,))


@pytest.mark.parametrize(
    ("query", "text", "fitting"),
    [
        ("Café", "a cafe\u0301 here", True),
        ("don't", "don t", True),
        ("word", "words", False),
        ("word*", "words", True),
        ('"a b"', "b a b", True),
        ('"b a"', "a b", False),
        ("a OR z", "a", True),
        ("a NOT b", "a b", False),
        ("a z", "a", False),
    ],
)
@pytest.mark.requirement("search:query:own-words")
def test_words_are_compared_without_case_and_accents(query: str, text: str, fitting: bool) -> None:
    tree = parse(query)
    assert tree is not None
    assert fits(tree, [folded_words(text)]) is fitting


@pytest.mark.requirement("search:hits:shape")
def test_a_snippet_takes_the_text_and_the_place_with_most_terms() -> None:
    far = "alpha " + "x " * 100 + "Alpha, beta! " + "y " * 100

    assert marked_snippet(("alpha only", None, "alpha beta"), [Term("alpha"), Term("beta")]) == ">>>alpha<<< >>>beta<<<"
    shown = marked_snippet((far,), [Term("alpha"), Term("beta")])
    assert ">>>Alpha<<<, >>>beta<<<!" in shown
    assert shown.startswith("...x x")
    assert shown.endswith("y...")
    assert marked_snippet(("a b c d",), [Term("b c"), Term("c d")]) == "a >>>b c d<<<"
    assert marked_snippet(("an alphabet",), [Term("alpha", prefix=True)]) == "an >>>alphabet<<<"
    assert marked_snippet((None, ""), [Term("alpha")]) == ""


@pytest.mark.requirement("search:hits:shape")
def test_an_excerpt_begins_40_characters_before_the_match() -> None:
    text = "z" * 100 + "ÄPFEL" + "z" * 200

    assert excerpt((text,), [Term("äpfel")]) == "z" * 40 + "ÄPFEL" + "z" * 75
    assert excerpt(("nothing", None), [Term("q")]) == "nothing"
    assert excerpt((None,), [Term("q")]) == ""
