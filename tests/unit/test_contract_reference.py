"""The generated page: current, whole, and its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.contract import Operation, load_operations
from aip_hermes.contract.reference import PAGE, main, reference_page
from aip_hermes.hermes import failures

ROOT = Path(__file__).resolve().parents[2]
ROWS = list(load_operations().values())
CODES = {
    kind.code.removeprefix("connector.hermes_agent.")
    for kind in vars(failures).values()
    if isinstance(kind, type) and issubclass(kind, failures.HermesFailed) and kind is not failures.HermesFailed
}


def section(row: Operation) -> str:
    return reference_page().partition(f"\n## {row.name}\n")[2].partition("\n## ")[0]


@pytest.mark.requirement("contract:reference:generated")
def test_the_page_is_what_the_rows_say() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == reference_page()


@pytest.mark.requirement("contract:reference:generated")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_section_says_what_a_caller_must_know(row: Operation) -> None:
    text = section(row)

    for part in (row.summary, row.http, f"**Risk** {row.risk}", f"**key** {row.key}", "**Input.**", "**Output.**"):
        assert part in text
    assert ("**Replay** safe" in text) is row.read_only
    assert ("**Approval** needed" in text) is (row.approval is not None)
    assert ("uncertain" in text) is not row.read_only
    told = [line.split("`")[1] for line in text.partition("**Errors.**")[2].splitlines() if line.startswith("| `")]
    assert set(told) <= CODES
    assert len(set(told)) == len(told) >= 6
    assert ("target_changed" in told) is (row.target is not None)
    assert ("session_busy" in told) is (row.serial != "none")


@pytest.mark.requirement("contract:reference:generated")
def test_the_command_writes_compares_and_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--check"]) == 1
    assert "run python -m aip_hermes.contract.reference" in capsys.readouterr().err
    assert (main([]), main(["--check"])) == (0, 0)
    PAGE.write_text(PAGE.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert main(["--check"]) == 1
    assert main(["--chekc"]) == 2
