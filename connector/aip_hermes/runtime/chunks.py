"""Chunks of a running action: stored as they come, then told to whoever follows.

Readers read from the store, so no reader slows the turn (design D17). Sequences count from 0 per action and go on over
attempts. Source: runtime behaviour §15, §16.
"""

from __future__ import annotations

import hashlib

from aip_hermes import wire
from aip_hermes.contract.handler import Chunk
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.runtime.erasure import name_subjects
from aip_hermes.runtime.events import Origin, append_event
from aip_hermes.runtime.failures import ChunkNotStored
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES, to_json

__all__ = ["Chunks", "chunk_event_id"]


class Chunks:
    """Publishes for one attempt; what `send` gets as its `publish`.

    lease: the number under which it runs. about: the subjects of its text (design D23).
    """

    def __init__(
        self,
        footing: Footing,
        *,
        origin: Origin,
        attempt: int,
        lease: int | None,
        about: frozenset[str] = frozenset(),
    ) -> None:
        self._footing = footing
        self._origin = origin
        self._claim = {"attempt": attempt, "lease": lease}
        self._about = about

    async def publish(self, chunk: Chunk) -> None:
        """Store a chunk and its event durably. Raises: ChunkNotStored, also once the attempt has ended."""
        await self._footing.faults.reach("before_publish")
        try:
            await self._footing.database.write(lambda connection: self._append(connection, chunk))
        except StoreFailure as exc:
            raise ChunkNotStored("a chunk of the stream could not be stored", retryable=False) from exc
        self._footing.watchers.changed(tenant=self._origin.tenant, action_id=self._origin.action_id)

    def _append(self, connection: Connection, chunk: Chunk) -> None:
        origin, now = self._origin, self._footing.now_ms()
        address = {"tenant": origin.tenant, "action_id": origin.action_id}
        last = connection.execute(QUERIES["last_chunk"], address)
        sequence = last[0]["sequence"] + 1 if last else 0
        if not last:
            name_subjects(connection, self._about, **address)
        stored = wire.StreamChunk(
            action_id=origin.action_id,
            sequence=sequence,
            kind=chunk.kind,
            data=chunk.data,
            part=wire.TextPart(type="text", text=chunk.text, format="plain") if chunk.text else None,
        )
        appended = connection.execute(
            QUERIES["append_chunk"],
            {
                **address,
                **self._claim,
                "sequence": sequence,
                "kind": chunk.kind,
                "chunk": to_json(stored.wire()),
                "now": now,
            },
        )
        if not appended:
            raise ChunkNotStored("the attempt that a chunk belongs to has ended; the chunk is not kept")
        append_event(
            connection,
            origin,
            event_id=chunk_event_id(origin, sequence),
            kind="aip.stream.chunk",
            now=now,
            data={"sequence": sequence, "kind": chunk.kind},
        )


def chunk_event_id(origin: Origin, sequence: int) -> str:
    """Return the id of a chunk's event: the same for the same chunk, whenever it is made.

    The tenant takes part where there is one, because Action IDs are unique per tenant only.
    """
    scope = f"{origin.tenant}\0" if origin.tenant else ""
    material = b"aip.stream.chunk.event.v1\0" + f"{scope}{origin.action_id}\0".encode() + sequence.to_bytes(8, "big")
    return "evt_stream_" + hashlib.sha256(material).hexdigest()
