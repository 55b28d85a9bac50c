"""Methods that write a transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import leases, transcript
from aip_hermes.embedded.session_db.store_file import StoreFile
from aip_hermes.embedded.session_db.usage import Usage

__all__ = ["TranscriptMethods"]


class TranscriptMethods(StoreFile):
    """Append messages, count them."""

    async def append_message(
        self,
        session_id: str,
        role: str,
        content: object = None,
        tool_name: str | None = None,
        tool_calls: Sequence[Any] | str | None = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: object = None,
        codex_reasoning_items: object = None,
        codex_message_items: object = None,
        platform_message_id: str | None = None,
        observed: bool = False,
        effect_disposition: str | None = None,
        timestamp: object = None,
        api_content: str | None = None,
        display_kind: str | None = None,
        display_metadata: object = None,
        compression_lock_holder: str | None = None,
        turn_lease_holder: str | None = None,
        turn_lease_ttl_seconds: float = 300.0,
        *,
        into_compressed: bool = False,
    ) -> int:
        """Append one message, count it on the row, return its row id.

        turn_lease_holder: who must hold the lease of the conversation; one of theirs that has run out is renewed for
        turn_lease_ttl_seconds. compression_lock_holder: not needed, a running compression keeps nobody from writing.
        into_compressed: as transcript.append.
        Raises UnknownSession, CompressionSessionClosedError, SessionTurnLeaseLostError; then nothing is written.
        """
        message = {
            "role": role,
            "content": content,
            "tool_name": tool_name,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
            "token_count": token_count,
            "finish_reason": finish_reason,
            "reasoning": reasoning,
            "reasoning_content": reasoning_content,
            "reasoning_details": reasoning_details,
            "codex_reasoning_items": codex_reasoning_items,
            "codex_message_items": codex_message_items,
            "platform_message_id": platform_message_id,
            "observed": observed,
            "effect_disposition": effect_disposition,
            "timestamp": timestamp,
            "api_content": api_content,
            "display_kind": display_kind,
            "display_metadata": display_metadata,
        }
        now = self._now()

        def append(connection: Connection) -> int:
            leases.check_turn_lease(connection, session_id, turn_lease_holder, now=now, ttl_s=turn_lease_ttl_seconds)
            (row_id,) = transcript.append(
                connection, session_id, [message], now=now, batch=False, into_compressed=into_compressed
            )
            return row_id

        return await self.write(append)

    async def append_messages_batch(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any]],
        compression_lock_holder: str | None = None,
        turn_lease_holder: str | None = None,
        chunk_rows: int | None = None,
        turn_lease_ttl_seconds: float = 300.0,
    ) -> int:
        """Append messages given by column names in one transaction, or in one per `chunk_rows`; returns how many.

        Row ids and session ids in them are ignored, so rows of another transcript may be given; `message_id` stands for
        `platform_message_id`, and reasoning is taken from assistant messages only. Raises as append_message, and
        ValueError for chunk_rows below 1.
        """
        if chunk_rows is not None and chunk_rows <= 0:
            raise ValueError("chunk_rows must be positive")
        rows, total = list(messages), 0
        step = chunk_rows or max(1, len(rows))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            total += await self._append_together(session_id, part, turn_lease_holder, turn_lease_ttl_seconds)
        return total

    async def _append_together(
        self, session_id: str, rows: Sequence[Mapping[str, Any]], holder: str | None, ttl_seconds: float
    ) -> int:
        now = self._now()

        def append(connection: Connection) -> int:
            leases.check_turn_lease(connection, session_id, holder, now=now, ttl_s=ttl_seconds)
            return len(transcript.append(connection, session_id, rows, now=now, batch=True))

        return await self.write(append)

    async def record_reply(
        self,
        session_id: str,
        content: str,
        *,
        finish_reason: str,
        usage: Usage,
        model: str,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        turn_lease_holder: str | None = None,
        release_turn_lease: bool = False,
        into_compressed: bool = False,
    ) -> int:
        """Append one assistant message of a turn and add its usage to the row, together; returns the row id.

        release_turn_lease: it is the turn's last row; the lease goes with it.
        Raises as append_message; a row that was deleted meanwhile does not come back.
        """
        reply = {
            "role": "assistant",
            "content": content,
            "finish_reason": finish_reason,
            "token_count": usage.output_tokens,
            "tool_calls": tool_calls,
        }
        now = self._now()

        def record(connection: Connection) -> int:
            leases.check_turn_lease(connection, session_id, turn_lease_holder, now=now)
            row_id = transcript.record_reply(
                connection,
                session_id,
                reply,
                usage=usage,
                model=model,
                now=now,
                into_compressed=into_compressed,
            )
            if release_turn_lease and turn_lease_holder is not None:
                leases.free(connection, "turn", leases.conversation_of(connection, session_id), turn_lease_holder)
            return row_id

        return await self.write(record)
