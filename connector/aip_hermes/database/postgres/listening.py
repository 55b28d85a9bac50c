"""What the workers of one store tell each other at a commit: LISTEN and NOTIFY.

A missed message costs time and nothing else: whoever waits for one looks by himself now and then, and is woken once
where the connection was lost, because messages may have been.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import psycopg
import structlog

from aip_hermes.database.connection import MISSED, Note
from aip_hermes.database.telling import tell

__all__ = ["Listener", "publish"]

log = structlog.get_logger(__name__)

_MOST_BYTES: Final = 7_900
_LOOK_S: Final = 0.25
_PAUSE_S: Final = 0.5


def publish(cursor: psycopg.Cursor[tuple[Any, ...]], channel: str, sender: str, notes: Sequence[Note]) -> None:
    """Tell the other workers, once this transaction is committed: each note once, and none that is too large for it."""
    told = dict.fromkeys(json.dumps([sender, name, dict(facts)]) for name, facts in notes)
    messages = [message for message in told if len(message) <= _MOST_BYTES]
    if messages:
        cursor.execute(b"SELECT pg_notify(%s, told) FROM unnest(%s::text[]) AS told", (channel, messages))


class Listener:
    """Hears what other workers publish, in a thread of its own, and passes it on in the loop that started it."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], channel: str, heard: Callable[[Note], None]
    ) -> None:
        self._connect, self._channel, self._heard = connect, channel, heard
        self.name = uuid4().hex
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin. From the first note on, which says that some may have been missed, everything is heard."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="postgres-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End and wait for it. Idempotent."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                with self._connect() as raw:
                    raw.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(self._channel)))
                    # Before this moment nothing could be heard.
                    self._pass_on((MISSED, {}))
                    while not self._ending.is_set():
                        for message in raw.notifies(timeout=_LOOK_S):
                            self._hear(message.payload)
            except psycopg.Error as error:
                log.warning("database.listener_lost", error_type=type(error).__name__)
                self._ending.wait(_PAUSE_S)

    def _hear(self, payload: str) -> None:
        with suppress(ValueError):
            sender, name, facts = json.loads(payload)
            if sender != self.name:
                self._pass_on((name, facts))

    def _pass_on(self, note: Note) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(tell, self._heard, (note,))
