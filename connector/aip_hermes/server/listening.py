"""A socket, the signals and uvicorn, for any ASGI application of ours.

The caller opens the application's lifespan itself, so that what goes wrong there reaches it as the exception it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from aip_hermes.server.patience import PatientProtocol, Unreadable

__all__ = ["CannotServe", "listen", "serve_asgi", "signals", "stop_signals"]

DRAIN_S: Final = 2
"""How long requests under way may take after a stop; then they are cancelled and answered as such."""
KEEP_ALIVE_S: Final = 75

WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotServe(Exception):
    """The server can't start. `str()` is for a person: the cause and the next step."""


def listen(host: str, port: int, *, advice: str) -> socket.socket:
    """Return a listening socket; port 0 picks a free one. `localhost` is 127.0.0.1, whatever the name resolves to.

    advice: ends the sentence when the port can't be had. The caller closes the socket. Raises CannotServe.
    """
    name = "127.0.0.1" if host == "localhost" else host
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise CannotServe(f"{name} is no address of this machine: {(exc.strerror or 'refused').lower()}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
        listener.setblocking(False)
    except OSError as exc:
        listener.close()
        reason = (exc.strerror or "refused").lower()
        raise CannotServe(f"can't listen on {name} port {port}: {reason}; {advice}") from None
    return listener


async def serve_asgi(
    application: ASGIApp,
    listener: socket.socket,
    *,
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
    unreadable: Unreadable | None = None,
) -> None:
    """Serve until `stop` is set, then at most DRAIN_S longer.

    on_ready: called once, when requests are answered, with the base URL, without a final slash. unreadable: answers
    bytes that are no HTTP request.
    """
    server = _Server(application, ready=lambda: on_ready(base_url(listener)), unreadable=unreadable)
    watcher = asyncio.create_task(server.end_when(stop))
    try:
        await server.serve(sockets=[listener])
    finally:
        watcher.cancel()


def base_url(listener: socket.socket) -> str:
    """Return where this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    host = WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def stop_signals(stop: asyncio.Event) -> contextlib.AbstractContextManager[None]:
    """Let SIGTERM and SIGINT set `stop`."""
    return signals({signal.SIGTERM: stop.set, signal.SIGINT: stop.set})


@contextlib.contextmanager
def signals(actions: dict[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Run an action of ours for each signal. Outside the main thread signals are somebody else's: nothing happens."""
    loop = asyncio.get_running_loop()
    installed: list[signal.Signals] = []
    try:
        for number, action in actions.items():
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, action)
                installed.append(number)
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """Uvicorn without its own lifespan, logging and signal handling, and with an end to its waiting."""

    def __init__(self, application: ASGIApp, *, ready: Callable[[], None], unreadable: Unreadable | None) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=PatientProtocol.answering(unreadable),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S,
            )
        )
        self._ready = ready

    async def end_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
