"""What the first bytes of a SQLite file say of it, whatever state the rest is in.

Source: the SQLite file format, database header: the magic string at 0, the application id at 68, big-endian.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["stated_id"]

_MAGIC: Final = b"SQLite format 3\0"
_ID_AT: Final = 68
_ID_BYTES: Final = 4


def stated_id(path: Path) -> int | None:
    """Return the application id in a file's head; None where it is no SQLite file.

    Nothing else is read: a server killed while it folded its log in leaves a main file that makes sense with its log
    only, and its head is right all the same.
    """
    with path.open("rb") as file:
        head = file.read(_ID_AT + _ID_BYTES)
    if len(head) < _ID_AT + _ID_BYTES or not head.startswith(_MAGIC):
        return None
    return int.from_bytes(head[_ID_AT:], "big")
