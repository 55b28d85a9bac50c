"""What a client asks an AIP server without changing anything; a failure that may pass is tried again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import Final, Literal

from aip_hermes import wire
from aip_hermes.client import listings
from aip_hermes.client.calling import naming
from aip_hermes.client.connection import AipConnection
from aip_hermes.client.failures import HttpFailed, PeerError
from aip_hermes.client.identities import CallIdentities
from aip_hermes.client.safe_reads import SafeReads
from aip_hermes.client.streams import Patience, StreamFrame
from aip_hermes.ids import ActionId, CapabilityId

__all__ = ["AipReads"]

_LONGEST_WAIT_S: Final = 30.0
"""Of one waiting read at the server."""


class AipReads:
    """The safe reads of a client.

    read_timeout_s: what the connection allows a read; a waiting one asks the server for half of it at most.
    """

    def __init__(self, connection: AipConnection, *, reads: SafeReads, read_timeout_s: float | None) -> None:
        self.connection = connection
        self._reads = reads
        self._longest_wait_s = min(_LONGEST_WAIT_S, (read_timeout_s or _LONGEST_WAIT_S * 2) / 2)
        self._contracts: dict[CapabilityId, wire.CapabilityContract] = {}

    async def me(self) -> listings.Me:
        """Return who the token is."""
        return listings.me_of(await self._reads(self.connection.me))

    async def capabilities(
        self,
        *,
        capability_id: CapabilityId | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> listings.CapabilityPage:
        """Return one page of the tenant's catalogue."""
        return listings.capability_page(
            await self._reads(
                lambda: self.connection.capabilities(capability_id=capability_id, text=text, cursor=cursor, limit=limit)
            )
        )

    async def contract(self, capability_id: CapabilityId) -> wire.CapabilityContract | None:
        """Return what a capability publishes, read once; None where the catalogue does not show it."""
        if capability_id not in self._contracts:
            try:
                page = await self.capabilities(capability_id=capability_id)
            except (PeerError, HttpFailed) as exc:
                # A server without a catalogue, or with none for this token.
                if exc.http_status not in (403, 404):
                    raise
                return None
            for listed in page.capabilities:
                if listed.capability.id == capability_id and listed.capability.contract is not None:
                    self._contracts[capability_id] = listed.capability.contract
        return self._contracts.get(capability_id)

    async def status(self, action_id: ActionId, *, wait_s: float | None = None) -> listings.Progress:
        """Return where an action stands. wait_s: how long, at most 30, the server may wait for its end."""
        with naming(CallIdentities(action_id=action_id)):
            return listings.progress_of(
                await self._reads(lambda: self.connection.status(action_id, wait_ms=self._wait_ms(wait_s)))
            )

    async def events(
        self,
        action_id: ActionId,
        *,
        cursor: str | None = None,
        kinds: Collection[str] = (),
        limit: int | None = None,
        include_chunks: bool = False,
    ) -> listings.EventPage:
        """Return one page of an action's events."""
        with naming(CallIdentities(action_id=action_id)):
            return listings.event_page(
                await self._reads(
                    lambda: self.connection.events(
                        action_id, kinds=kinds, cursor=cursor, limit=limit, include_chunks=include_chunks
                    )
                )
            )

    def stream(
        self,
        action_id: ActionId,
        *,
        cursor: str | None = None,
        kinds: Collection[str] = (),
        include_chunks: bool = True,
        chunks_only: bool = False,
        patience: Patience = Patience(),  # noqa: B008  frozen
    ) -> AsyncGenerator[StreamFrame, None]:
        """Yield every event and chunk of an action once, as it comes, to its end. See `AipConnection.follow`."""
        return self.connection.follow(
            action_id,
            cursor=cursor,
            kinds=kinds,
            include_chunks=include_chunks,
            chunks_only=chunks_only,
            patience=patience,
        )

    async def approvals(
        self,
        *,
        status: Literal["pending", "approved", "denied", "expired", "revoked"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> listings.ApprovalPage:
        """Return one page of the approvals that the caller may see, oldest first."""
        return listings.approval_page(
            await self._reads(lambda: self.connection.approvals(status=status, cursor=cursor, limit=limit))
        )

    def _wait_ms(self, wait_s: float | None) -> int | None:
        return None if wait_s is None else int(min(wait_s, self._longest_wait_s) * 1000)
