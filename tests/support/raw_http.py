"""Requests as bytes, each on a connection of its own: also such that no client library would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Answered", "RawServer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        """The code of an error, wherever the answer has it; None for an answer without one."""
        with suppress(ValueError):
            told = json.loads(self.body)
            found = told.get("body", {}).get("error", {}).get("error") or told.get("error")
            found = found or told.get("body", {}).get("action_result", {}).get("error")
            return None if found is None else str(found["code"])
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class RawServer:
    """table: method and path template of every route."""

    address: tuple[str, int]
    table: tuple[tuple[str, str], ...]

    async def ask(
        self,
        method: str,
        target: bytes,
        headers: bytes = b"",
        *,
        body: bytes = b"",
        kind: str = "application/json",
        announced: bool = True,
    ) -> Answered:
        """Send one request. kind: its media type. announced: with the length of its body, else in one piece without."""
        typed = b"content-type: " + kind.encode("latin-1") + b"\r\n" if body else b""
        head = method.encode() + b" " + target + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + headers + typed
        if announced:
            return await self.send(head + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        return await self.send(head + b"transfer-encoding: chunked\r\n\r\n" + chunk)

    async def send(self, data: bytes) -> Answered:
        """Send bytes and read until the server closes."""
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(*self.address)
            try:
                writer.write(data)
                with suppress(ConnectionError):
                    await writer.drain()
                received = await reader.read()
            finally:
                writer.close()
        head, _, content = received.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        return Answered(status=int(line.split(" ")[1]), headers=headers, body=content)
