"""The listing of sessions on terminals of several widths: what is to be copied is whole."""

from __future__ import annotations

import io
from typing import Any, Final

import pytest

from aip_hermes.cli.sessions.view import print_rows

ROWS: Final[list[dict[str, Any]]] = [
    {
        "id": f"verify-ebbf647bc549-{name}",
        "title": "Checked, and reviewed by somebody with much to say",
        "preview": None,
        "last_active": 1796108213.4,
        "message_count": 12,
        "ended_at": 1796108214.0,
        "end_reason": "case_closed",
    }
    for name in ("fork", "other")
]


@pytest.mark.requirement("sessions-command:reads")
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_ids_and_times_are_whole_on_every_terminal(width: int) -> None:
    file = io.StringIO()
    print_rows(ROWS, file=file, width=width)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    if width >= 80:
        assert all(f" {row['id']} " in line for row, line in zip(ROWS, lines[-2:], strict=True))
        assert all("2026-12-01 " in line and "Z " in line for line in lines[-2:])
    folded = "".join(line[1:].split("  ")[0].strip() for line in lines if line[1] != " ")
    assert folded.endswith("".join(row["id"] for row in ROWS))
