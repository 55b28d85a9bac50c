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


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
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
