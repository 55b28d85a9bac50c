"""From the name of a host to a connection, with TLS where it is wanted. Whoever stops waiting leaves nothing open."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

__all__ = ["dial"]

P = TypeVar("P", bound=asyncio.Protocol)

_Address = tuple[int, int, int, str, Any]

_NEXT_ADDRESS_S: Final = 0.25
"""After which the next address of a host is tried beside the first (RFC 8305)."""


async def dial(protocol: Callable[[], P], host: str, port: int, *, tls: ssl.SSLContext | None) -> P:
    """Connect, and return the protocol of the connection, which has been told that it was made.

    Raises: OSError, or an ExceptionGroup with what each address of the host said.
    """
    connected = await _connected(await _addresses(host, port))
    if tls is None:
        return await _made(protocol, connected)
    return await _secured(protocol, connected, tls, host)


async def _made(protocol: Callable[[], P], connected: socket.socket) -> P:
    _, made = await asyncio.get_running_loop().create_connection(protocol, sock=connected)
    return made


async def _secured(protocol: Callable[[], P], connected: socket.socket, tls: ssl.SSLContext, host: str) -> P:
    """Agree on TLS. What comes before it, in plain text, is read by nobody.

    In two steps, since asyncio forgets a connection that is cancelled just before its handshake begins.
    """
    transport = (await _made(_Unheard, connected)).transport
    try:
        made = protocol()
        secured = await asyncio.get_running_loop().start_tls(transport, made, tls, server_hostname=host)
        if secured is None:
            raise ConnectionResetError("the connection was closed after its handshake")
        made.connection_made(secured)
    except BaseException:
        transport.abort()
        raise
    return made


class _Unheard(asyncio.Protocol):
    """What listens to a connection before TLS is agreed on: nobody."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)


async def _addresses(host: str, port: int) -> Sequence[_Address]:
    """Return the addresses of a host, in the order in which they are to be tried. A numeral needs no thread for it.

    Raises: OSError.
    """
    with suppress(socket.gaierror):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connected(addresses: Sequence[_Address]) -> socket.socket:
    """Connect to the first address that takes it; where one hesitates, the next one is tried beside it.

    asyncio does the same for `happy_eyeballs_delay`, but a call that is cancelled meanwhile leaves its sockets to the
    garbage collector, and before Python 3.12 several refusals come as one text that no longer says what they were.
    Raises: OSError, or an ExceptionGroup with what each address said.
    """
    if len(addresses) == 1:
        return await _try(addresses[0])
    left = iter(addresses)
    tries: list[asyncio.Task[socket.socket]] = []
    waiting: set[asyncio.Task[socket.socket]] = set()
    errors: list[Exception] = []
    winner = None
    try:
        while winner is None:
            address = next(left, None)
            if address is not None:
                tries.append(asyncio.create_task(_try(address)))
                waiting.add(tries[-1])
            elif not waiting:
                raise ExceptionGroup("no address took the connection", errors)
            patience = None if address is None else _NEXT_ADDRESS_S
            done, waiting = await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            winner = next((each for each in done if each.exception() is None), None)
            errors += [error for each in done if isinstance(error := each.exception(), Exception)]
        return winner.result()
    finally:
        for each in tries:
            if not each.cancel() and each is not winner and each.exception() is None:
                each.result().close()


async def _try(address: _Address) -> socket.socket:
    family, kind, protocol, _, place = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, place)
    except BaseException:
        made.close()
        raise
    return made
