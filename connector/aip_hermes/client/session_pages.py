"""Reading a list that moves: every turn puts its session first, so pages repeat and skip rows.

Each page begins with the last row of the one before it. Where another row stands there, something moved. At the end
the first page is read again, for what came or moved to the front meanwhile. Source: field report F106.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aip_hermes.client.failures import Undecodable
from aip_hermes.client.hermes_objects import Session, SessionListing, SessionPage

__all__ = ["read_all"]


async def read_all(page: Callable[[int, int], Awaitable[SessionPage]], *, page_size: int) -> SessionListing:
    """Return every session that was seen, once. page: reads (limit, offset). page_size: at least 2.

    Raises: Undecodable for an endpoint that answers another offset than was asked; the failures of `page`.
    """
    if page_size < 2:
        raise ValueError("page_size is at least 2: pages overlap by one row")
    found: dict[str, Session] = {}
    first: list[str] = []
    last: str | None = None
    changed, offset, pages = False, 0, 0
    while True:
        read = await page(page_size, offset)
        pages += 1
        _check_offset(read, offset)
        ids = [session.id for session in read.sessions]
        if pages == 1:
            first = list(ids)
        elif not ids or ids[0] != last:
            changed = True
        new = [session for session in read.sessions if session.id not in found]
        found |= {session.id: session for session in new}
        if not read.has_more or not new:
            break
        last, offset = ids[-1], offset + len(ids) - 1
    if pages > 1:
        again = await page(page_size, 0)
        pages += 1
        changed = changed or [session.id for session in again.sessions] != first
        found |= {session.id: session for session in again.sessions if session.id not in found}
    return SessionListing(sessions=tuple(found.values()), changed=changed, pages=pages)


def _check_offset(read: SessionPage, asked: int) -> None:
    if read.offset not in (None, asked):
        raise Undecodable(f"Hermes answer: the list of sessions has `offset` {read.offset} where {asked} was asked")
