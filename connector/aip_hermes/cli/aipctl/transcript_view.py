"""A session as a person reads it. Whatever an endpoint wrote is text: it colours, hides and moves nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from aip_hermes.cli.aipctl.terminal import json_text, safe_text

__all__ = ["print_transcript", "print_tree"]

_ROW: Final = (
    "id",
    "title",
    "source",
    "model",
    "started_at",
    "ended_at",
    "end_reason",
    "message_count",
    "parent_session_id",
)
_TIMES: Final = frozenset({"started_at", "ended_at"})
_SAYS: Final = {
    "root": "",
    "fork": "fork",
    "compression": "goes on after a compression",
    "delegate": "subagent",
    "unproven": "child; the rows allow a fork and a continuation",
}


def print_transcript(found: Mapping[str, Any], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print what `transcript show` found: the row as two columns, the messages in order. Nothing is cut."""
    console = Console(file=file or sys.stdout, width=width, highlight=False)
    session = found["session"]
    about = Table(show_header=False, box=None)
    for name in _ROW:
        if session.get(name) is not None:
            about.add_row(Text(name.replace("_", " "), style="bold"), Text(_value(name, session[name])))
    console.print(about)
    messages = found["messages"]
    if messages is None:
        console.print(Text("its messages are gone"))
        return
    if not messages["own"]:
        console.print(Text(f"these messages are of {safe_text(messages['session_id'])}, not of this session", "yellow"))
    table = Table(show_lines=True)
    for column in ("when", "who", "what"):
        table.add_column(column, overflow="fold", no_wrap=column != "what")
    for row in messages["data"]:
        table.add_row(Text(_value("started_at", row.get("timestamp"))), Text(safe_text(row.get("role"))), _said(row))
    console.print(table)


def print_tree(found: Mapping[str, Any], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print what `transcript tree` found."""
    console = Console(file=file or sys.stdout, width=width, highlight=False)
    root = found["root"]
    tree = Tree(_label(root, asked=found["session_id"]))
    _grow(tree, root, asked=found["session_id"])
    console.print(tree)
    if not found["complete"]:
        console.print(Text("the list moved while it was read: a child may be missing", style="yellow"))


def _grow(tree: Tree, branch: Mapping[str, Any], *, asked: str) -> None:
    for child in branch["children"]:
        _grow(tree.add(_label(child, asked=asked)), child, asked=asked)


def _label(branch: Mapping[str, Any], *, asked: str) -> Text:
    session = branch["session"]
    label = Text(safe_text(session["id"]), style="bold" if session["id"] == asked else "")
    if session.get("title"):
        label.append(f"  {safe_text(session['title'])}", style="")
    end = f"ended as {safe_text(session['end_reason'])}" if session.get("ended_at") is not None else "open"
    facts = [_SAYS.get(branch["kind"], ""), f"{session.get('message_count')} messages", end]
    return label.append(f"  ({', '.join(fact for fact in facts if fact)})", style="dim")


def _said(row: Mapping[str, Any]) -> Text:
    content = row.get("content")
    if isinstance(content, str):
        said = "\n".join(map(safe_text, content.split("\n")))
    else:
        said = "" if content is None else json_text(content)
    calls = row.get("tool_calls")
    return Text(said if not calls else f"{said}\n{json_text(calls)}".lstrip("\n"))


def _value(name: str, value: object) -> str:
    if name in _TIMES and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        except (OverflowError, OSError, ValueError):
            return safe_text(value)
    return "" if value is None else safe_text(value)
