"""A real endpoint asked directly, beside everything under test: to arrange what is needed, to see what is there."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.real.gateway import RealHermes

__all__ = ["RealRows", "real_rows"]


@dataclass(frozen=True, kw_only=True)
class RealRows:
    """client: authorized. mark: in the ids and titles of one test, so that tests can share an endpoint."""

    client: httpx.AsyncClient
    mark: str = field(default_factory=lambda: secrets.token_hex(4))

    async def create(self, session_id: str, **fields: Any) -> None:
        answer = await self.client.post("/api/sessions", json={"id": session_id, **fields})
        assert answer.status_code == 201, answer.text

    async def chat(self, session_id: str, message: str) -> dict[str, Any]:
        answer = await self.client.post(f"/api/sessions/{session_id}/chat", json={"message": message})
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def row(self, session_id: str) -> dict[str, Any] | None:
        answer = await self.client.get(f"/api/sessions/{session_id}")
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        session: dict[str, Any] = answer.json()["session"]
        return session

    async def messages(self, session_id: str) -> tuple[str, list[dict[str, Any]]]:
        """Return whose messages the endpoint answers, and them."""
        answer = await self.client.get(f"/api/sessions/{session_id}/messages")
        assert answer.status_code == 200, answer.text
        return answer.json()["session_id"], answer.json()["data"]


@asynccontextmanager
async def real_rows(hermes: RealHermes) -> AsyncIterator[RealRows]:
    """Yield the endpoint as it is."""
    async with httpx.AsyncClient(
        base_url=hermes.url, headers={"Authorization": f"Bearer {hermes.key}"}, trust_env=False, timeout=60
    ) as client:
        yield RealRows(client=client)
