"""Named queries and their other dialect."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aip_hermes.database import Queries

pytestmark = pytest.mark.requirement("database:queries:dialect")

OURS = "-- name: one\n-- What one is.\nSELECT 1;\n\n-- name: two\n-- What two is.\nSELECT 2;\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"dialect_{tmp_path.name.replace('-', '_')}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "q.sql").write_text(OURS)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop(folder.name, None)
    return folder


def test_a_query_carries_what_the_other_engine_reads_and_is_else_the_same(package: Path) -> None:
    (package / "q.postgres.sql").write_text("-- name: two\n-- What two is there.\nSELECT 2::bigint;\n")
    queries = Queries.load(package=package.name, names=("q.sql",))
    assert {name: (str(query), query.postgres) for name, query in queries.items()} == {
        "one": ("SELECT 1", None),
        "two": ("SELECT 2", "SELECT 2::bigint"),
    }


@pytest.mark.requirement("database:queries:parts")
def test_a_part_of_several_queries_is_written_once_in_either_dialect(package: Path) -> None:
    part = "-- name: which\n-- Which rows.\n"
    (package / "q.sql").write_text(
        "-- name: all\n-- Every one.\nSELECT 1 WHERE /*which*/ /* a remark */ AND 2;\n\n"
        f"{part}a = /*what*/;\n\n-- name: what\n-- A value.\n3;\n"
    )
    (package / "q.postgres.sql").write_text(f"{part}b = /*what*/;\n")
    queries = Queries.load(package=package.name, names=("q.sql",))
    query = queries["all"]
    assert str(query) == "SELECT 1 WHERE a = 3 /* a remark */ AND 2"
    assert (query.postgres, queries["what"].postgres) == ("SELECT 1 WHERE b = 3 /* a remark */ AND 2", None)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("q.sql", "-- name: one\n-- One.\nSELECT /*two*/;\n", "one: /\\*two\\*/ is no entry"),
        (
            "q.sql",
            "-- name: one\n-- One.\nSELECT /*two*/;\n-- name: two\n-- Two.\n/*one*/;\n",
            "two: /\\*one\\*/ contains itself",
        ),
        ("q.postgres.sql", "-- name: three\n-- Nobody asks.\nSELECT 3;\n", "three is not in q.sql"),
        ("q.sql", OURS + "-- name: one\n-- Again.\nSELECT 1;\n", "one is empty or written twice"),
        ("q.sql", OURS + "-- name: four\nSELECT 4;\n", "one comment line"),
    ],
)
def test_what_has_no_counterpart_no_sentence_or_a_twin_is_refused(
    package: Path, file: str, text: str, said: str
) -> None:
    (package / file).write_text(text)
    with pytest.raises(ValueError, match=said):
        Queries.load(package=package.name, names=("q.sql",))
