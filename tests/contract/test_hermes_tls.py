"""An https endpoint with which no TLS can be agreed: a cause of its own, certain, and never blamed on the key."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aip_hermes.errors import ActionFailed
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import KEY
from tests.support.own_certificate import server_context

GREETINGS = {
    "plain-http": b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    "garbage": b"\xff" * 64,
    "an-alert": bytes.fromhex("15030300020228"),
}
"""What a listener that speaks no TLS, or refuses to, answers to a client's first words."""


@asynccontextmanager
async def listener(answer: bytes, tls: ssl.SSLContext | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield a port of this machine and what was heard there, after the handshake where there is one."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65_536))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


@pytest.mark.requirement("hermes:errors:tls")
@pytest.mark.parametrize("name", ["session_get", "session_create", "session_chat"])
@pytest.mark.parametrize("kind", [*GREETINGS, "self-signed"])
async def test_a_failed_handshake_is_a_cause_of_its_own(kind: str, name: str, tmp_path: Path) -> None:
    tls = server_context(tmp_path) if kind == "self-signed" else None
    async with (
        asyncio.timeout(30),
        listener(GREETINGS.get(kind, b""), tls) as (port, heard),
        connector_of(endpoint_of(f"https://127.0.0.1:{port}/")) as connector,
    ):
        outcome = await attempt(handler_of(connector, name), call_of(name))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.details["reason"]) == ("connector.hermes_agent.transport", "tls")
    assert (outcome.uncertain, outcome.details["sent"]) == (False, False)
    assert "Hermes endpoint primary could not agree on TLS" in outcome.message
    assert "a certificate that this machine trusts" in outcome.message
    assert "key file" not in outcome.message
    assert "endpoint key" not in outcome.message
    assert str(port) not in outcome.message
    assert KEY not in outcome.message + repr(outcome.details)
    assert KEY.encode() not in b"".join(heard)
