"""Sessions and hits as a person reads them. Whatever somebody stored is text: it colours, hides and moves nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aip_hermes.cli.aipctl.terminal import safe_text

__all__ = ["print_hits", "print_rows"]

_HEADS: Final = ("session", "last active", "messages", "state")
_TITLE_CHARS: Final = 8


def print_rows(rows: Sequence[Mapping[str, Any]], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print one line per session; ids are never cut, so that they can be copied."""
    console = _console(file, width)
    shown = [(safe_text(row["id"]), _time(row["last_active"]), str(row["message_count"]), _state(row)) for row in rows]
    table = Table(box=None, header_style="bold")
    # The title gives way first. Where even then there is no room, the rest is folded: a column that may not be
    # wrapped would be cut.
    narrow = sum(max(map(len, cells)) + 2 for cells in zip(_HEADS, *shown, strict=True)) > console.width - _TITLE_CHARS
    for name in _HEADS:
        table.add_column(name, no_wrap=not narrow, overflow="fold", justify="right" if name == "messages" else "left")
    table.add_column("title or beginning")
    for row, cells in zip(rows, shown, strict=True):
        about = Text(safe_text(row["title"] or row["preview"]), style="" if row["title"] else "dim")
        about.no_wrap, about.overflow = True, "ellipsis"
        table.add_row(*map(Text, cells), about)
    console.print(table)


def print_hits(hits: Sequence[Mapping[str, Any]], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print one entry per message that was found, the found words in bold."""
    table = Table(show_lines=True, header_style="bold")
    table.add_column("session", overflow="fold")
    table.add_column("when", no_wrap=True)
    table.add_column("who", no_wrap=True)
    table.add_column("what", overflow="fold")
    for hit in hits:
        who = f"{hit['role']} {hit['tool_name']}" if hit["tool_name"] else hit["role"]
        table.add_row(
            Text(safe_text(hit["session_id"])), _time(hit["timestamp"]), Text(safe_text(who)), _marked(hit["snippet"])
        )
    _console(file, width).print(table)


def _console(file: TextIO | None, width: int | None) -> Console:
    return Console(file=file or sys.stdout, width=width, highlight=False)


def _marked(snippet: str) -> Text:
    text = Text()
    for number, part in enumerate(snippet.split(">>>")):
        found, mark, after = part.partition("<<<")
        if number and mark:
            text.append(safe_text(found), style="bold")
            text.append(safe_text(after))
        else:
            text.append(safe_text(part))
    return text


def _state(row: Mapping[str, Any]) -> str:
    state = "open" if row["ended_at"] is None else safe_text(row["end_reason"] or "ended")
    flags = [name for name in ("pinned", "archived", "hidden") if row.get(name)]
    return ", ".join([state, *flags])


def _time(value: Any) -> str:
    try:
        return datetime.fromtimestamp(value, tz=UTC).strftime("%Y-%m-%d %H:%MZ")
    except (TypeError, OverflowError, OSError, ValueError):
        return safe_text(value)
