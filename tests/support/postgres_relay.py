"""A relay before a PostgreSQL server that cuts the connection at a COMMIT, before or after the server had it."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

__all__ = ["CommitCutter"]

_SOCKET: Final = ".s.PGSQL.5432"
_COMMIT: Final = b"COMMIT\0"


class CommitCutter:
    """Listens on a socket of its own and passes bytes on. cuts: how many connections it has cut."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        self._target = str(Path(parse_qs(parts.query)["host"][0]) / _SOCKET)
        # Not the test's folder: the path of a socket has room for about a hundred characters.
        self._folder = tempfile.TemporaryDirectory(prefix="pgr-")
        self.dsn = f"postgresql://{parts.netloc}{parts.path}?host={self._folder.name}"
        self.cuts = 0
        self._armed: bool | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._folder.name) / _SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            one.close()
        self._folder.cleanup()

    def cut_next(self, *, reaches_server: bool) -> None:
        """Cut the connection that sends the next COMMIT; reaches_server: once the server has answered it."""
        self._armed = reaches_server

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._open += [client, server]
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if _COMMIT in data and self._armed is not None:
                    reaches, self._armed = self._armed, None
                    self.cuts += 1
                    # Down first, so that no byte of the answer gets through.
                    client.shutdown(socket.SHUT_RDWR)
                    if reaches:
                        server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)


def _pass_on(server: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(65536):
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
