"""A signed webhook that tells one address that an approval waits. A hint, not a queue: what waits is in the store.

Sent after the commit, one at a time, repeated a few times with growing pauses; whatever becomes of it, no action waits
for it or fails by it. The body has ids and times, never an input. Source: issue "a runtime that never lies",
operations; docs/how-to/operate.md, "Webhook".
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, Final

import httpx
import structlog

from aip_hermes import wire
from aip_hermes.loopback import dials_this_machine
from aip_hermes.ports import Clock, NewId
from aip_hermes.secret import Secret
from aip_hermes.settings import NotifySettings

__all__ = ["ID_HEADER", "SIGNATURE_HEADER", "TIMESTAMP_HEADER", "Notifier", "signature"]

ID_HEADER: Final = "X-AIP-Webhook-Id"
TIMESTAMP_HEADER: Final = "X-AIP-Webhook-Timestamp"
SIGNATURE_HEADER: Final = "X-AIP-Webhook-Signature"

WAITING: Final = 256
"""How many hints may wait to be sent; the next one is dropped, and the log says so."""
PAUSES_S: Final = (1.0, 5.0, 30.0, 120.0)
"""Between the five tries of one hint."""
TIMEOUT_S: Final = 10.0

log = structlog.get_logger(__name__)


def signature(secret: Secret, *, timestamp: int, body: bytes) -> str:
    """Return `v1=` and the hex HMAC-SHA256 over the timestamp (Unix seconds, decimal), a full stop and the body."""
    signed = f"{timestamp}.".encode("ascii") + body
    return "v1=" + hmac.new(secret.reveal().encode("utf-8"), signed, hashlib.sha256).hexdigest()


class Notifier:
    """Sends hints in the background from `open` to `aclose`. transport: stands in for the network."""

    def __init__(
        self,
        settings: NotifySettings,
        *,
        clock: Clock,
        new_id: NewId,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._transport = transport
        self._hints: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(maxsize=WAITING)
        self._sending: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to send."""
        self._sending = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Send no more; what waits is dropped: the approval itself is in the store. Idempotent."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait((self._sending,))
            self._sending = None

    def approval_waits(self, facts: Mapping[str, Any]) -> None:
        """Take a hint about a committed approval; returns at once.

        facts: approval_id, capability_id, endpoint_id, requester_id, expires_at (Unix milliseconds or None).
        """
        expires_at = facts["expires_at"]
        hint = {
            "type": "aip.approval.waiting",
            "approval_id": facts["approval_id"],
            "capability_id": facts["capability_id"],
            "endpoint_id": facts["endpoint_id"],
            "requester": facts["requester_id"],
            "expires_at": None if expires_at is None else wire.rfc3339(expires_at),
        }
        body = json.dumps(hint, separators=(",", ":")).encode("ascii")
        try:
            self._hints.put_nowait((str(facts["approval_id"]), body))
        except asyncio.QueueFull:
            log.warning("notify.dropped", approval_id=facts["approval_id"])

    async def _run(self) -> None:
        # Loopback never meets a proxy; elsewhere the environment may name one.
        here = dials_this_machine(httpx.URL(self._settings.url).host)
        async with httpx.AsyncClient(
            transport=self._transport, trust_env=not here and self._transport is None, timeout=TIMEOUT_S
        ) as client:
            while True:
                approval_id, body = await self._hints.get()
                try:
                    await self._deliver(client, approval_id, body)
                except Exception as error:  # a hint that can't be sent must not end those after it
                    log.error("notify.broken", approval_id=approval_id, error_type=type(error).__name__, exc_info=error)

    async def _deliver(self, client: httpx.AsyncClient, approval_id: str, body: bytes) -> None:
        delivery_id = self._new_id("hook_")
        for tries, pause_s in enumerate((*PAUSES_S, None), start=1):
            result = await self._send(client, delivery_id, body)
            if result == "delivered":
                log.info("notify.sent", approval_id=approval_id, tries=tries)
                return
            if result.startswith("refused") or pause_s is None:
                log.warning("notify.failed", approval_id=approval_id, tries=tries, reason=result)
                return
            await self._clock.sleep(pause_s)

    async def _send(self, client: httpx.AsyncClient, delivery_id: str, body: bytes) -> str:
        """Send once. `delivered`; `refused …` for an answer that a repetition won't change; else why it failed."""
        timestamp = self._clock.now_ms() // 1000
        headers = {
            "content-type": "application/json",
            ID_HEADER: delivery_id,
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: signature(self._settings.secret, timestamp=timestamp, body=body),
        }
        try:
            async with client.stream(
                "POST", self._settings.url, content=body, headers=headers, follow_redirects=False
            ) as answer:
                status = answer.status_code
        except httpx.HTTPError as error:
            return f"no answer: {type(error).__name__}"
        if 200 <= status < 300:
            return "delivered"
        passing = status in (408, 425, 429) or status >= 500
        return f"HTTP {status}" if passing else f"refused with HTTP {status}"
