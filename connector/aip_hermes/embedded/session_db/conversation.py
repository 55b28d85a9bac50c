"""The transcript as a model reads it, and the repair of sequences that no model accepts.

Both only change what is fed to a model; stored rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import decoded_columns
from aip_hermes.embedded.session_db.json_text import json_value
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["conversation", "conversation_message", "repair_message_sequence", "told_rows"]

_COLUMNS: Final = (
    "id", "role", "content", "timestamp", "finish_reason", "observed",
    "api_content", "display_kind", "display_metadata", "tool_call_id", "tool_name", "effect_disposition", "tool_calls",
    "platform_message_id", "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items",
    "codex_message_items",
)  # fmt: skip
_TEXT_COLUMNS: Final = 7
"""Of a row that holds a text alone; the last one tells so."""
_NOTHING_MORE: Final = (None,) * (len(_COLUMNS) - _TEXT_COLUMNS + 1)

_OPTIONAL = (
    ("api_content", "api_content"),
    ("display_kind", "display_kind"),
    ("display_metadata", "display_metadata"),
    ("timestamp", "timestamp"),
    ("tool_call_id", "tool_call_id"),
    ("tool_name", "tool_name"),
    ("effect_disposition", "effect_disposition"),
    ("tool_calls", "tool_calls"),
    ("platform_message_id", "message_id"),
)
_ASSISTANT_TEXT = ("finish_reason", "reasoning")
_ASSISTANT_JSON = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
_REPLACED_BY_NEXT = frozenset({"verification_required", "verify_hook_continue"})


def told_rows(connection: Connection, session_id: str, *, include_inactive: bool) -> list[tuple[Any, ...]]:
    """Return the rows of a transcript for `conversation`. Most hold a text and nothing more, and are read so."""
    asked = {"session_id": session_id, "include_inactive": int(include_inactive)}
    rows = connection.tuples(QUERIES["fetch_told_texts"], asked)
    if not any(row[-1] for row in rows):
        return rows
    whole = {row[0]: row for row in connection.tuples(QUERIES["fetch_told_rest"], asked)}
    return [whole[row[0]] if row[-1] else row for row in rows]


def conversation(rows: Iterable[tuple[Any, ...]], *, include_row_ids: bool = False) -> list[dict[str, Any]]:
    """Return the transcript of `told_rows` as a model reads it."""
    found: list[dict[str, Any]] = []
    for row in rows:
        # A transcript has thousands of rows: those that hold a text alone are made into messages at once.
        if len(row) != _TEXT_COLUMNS or row[5] or type(row[2]) is not str or row[2][:1] == "\0":
            whole = row if len(row) == len(_COLUMNS) else (*row[:-1], *_NOTHING_MORE)
            columns = decoded_columns(dict(zip(_COLUMNS, whole, strict=True)))
            found.append(conversation_message(columns, include_row_id=include_row_ids))
            continue
        row_id, role, content, timestamp, finish_reason, _, _ = row
        message: dict[str, Any] = {"role": role, "content": content}
        if include_row_ids:
            message["_row_id"] = row_id
        if timestamp:
            message["timestamp"] = timestamp
        if finish_reason and role == "assistant":
            message["finish_reason"] = finish_reason
        found.append(message)
    return found


def conversation_message(row: Mapping[str, Any], *, include_row_id: bool = False) -> dict[str, Any]:
    """Return `{role, content}` of a message dictionary plus the members that are present."""
    message: dict[str, Any] = {"role": row["role"], "content": row["content"]}
    if include_row_id:
        message["_row_id"] = row["id"]
    for column, key in _OPTIONAL:
        if row[column]:
            message[key] = row[column]
    if row["observed"]:
        message["observed"] = True
    if row["role"] == "assistant":
        for column in _ASSISTANT_TEXT:
            if row[column]:
                message[column] = row[column]
        if row["reasoning_content"] is not None:
            message["reasoning_content"] = row["reasoning_content"]
        for column in _ASSISTANT_JSON:
            if row[column]:
                message[column] = _decoded(row[column])
    return message


def repair_message_sequence(messages: MutableSequence[dict[str, Any]]) -> int:
    """Repair in place: join neighbouring assistant messages, drop tool results without a call, join neighbouring user
    messages with a blank line. Returns the number of repairs; unanswered tool calls stay.
    """
    repairs = _join_assistants(messages)
    repairs += _drop_stray_results(messages)
    return repairs + _join_users(messages)


def _join_assistants(messages: MutableSequence[dict[str, Any]]) -> int:
    repairs, at = 0, 1
    while at < len(messages):
        before, message = messages[at - 1], messages[at]
        if before["role"] != "assistant" or message["role"] != "assistant" or _exempt(before) or _exempt(message):
            at += 1
            continue
        messages[at - 1] = (
            dict(message) if before.get("finish_reason") in _REPLACED_BY_NEXT else _joined(before, message)
        )
        del messages[at]
        repairs += 1
    return repairs


def _joined(before: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(before)
    calls = [*(before.get("tool_calls") or []), *(message.get("tool_calls") or [])]
    if calls:
        joined["tool_calls"] = calls
    texts = [before.get("content"), message.get("content")]
    if all(text is None or isinstance(text, str) for text in texts):
        joined["content"] = "\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    if before.get("reasoning_content") is None and message.get("reasoning_content") is not None:
        joined["reasoning_content"] = message["reasoning_content"]
    return joined


def _exempt(message: Mapping[str, Any]) -> bool:
    return bool(
        message.get("codex_reasoning_items")
        or message.get("codex_message_items")
        or message.get("finish_reason") == "incomplete"
    )


def _drop_stray_results(messages: MutableSequence[dict[str, Any]]) -> int:
    open_calls: list[set[str]] = []
    kept: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            open_calls = [{str(c[k]) for k in ("id", "call_id") if c.get(k)} for c in calls if isinstance(c, Mapping)]
        elif message["role"] == "user":
            open_calls = []
        elif message["role"] == "tool":
            answered = next((names for names in open_calls if message.get("tool_call_id") in names), None)
            if answered is None:
                continue
            open_calls.remove(answered)
        kept.append(message)
    dropped = len(messages) - len(kept)
    if dropped:
        messages[:] = kept
    return dropped


def _join_users(messages: MutableSequence[dict[str, Any]]) -> int:
    repairs, at = 0, 1
    while at < len(messages):
        before, message = messages[at - 1], messages[at]
        if not (
            before["role"] == message["role"] == "user"
            and isinstance(before.get("content"), str)
            and isinstance(message.get("content"), str)
        ):
            at += 1
            continue
        joined = dict(before) | {"content": f"{before['content']}\n\n{message['content']}"}
        joined.pop("api_content", None)
        messages[at - 1] = joined
        del messages[at]
        repairs += 1
    return repairs


def _decoded(value: object) -> object:
    return json_value(value, default=value) if isinstance(value, str) else value
