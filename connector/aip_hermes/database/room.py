"""What keeps a store's file from taking another write, as far as its file system says: nothing is written for that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

__all__ = ["LEAST_FREE_BYTES", "Obstacle", "obstacle_at"]

Obstacle = Literal["read_only", "full"]

LEAST_FREE_BYTES: Final = 1 << 20
"""A commit of a few large results needs that much."""


def obstacle_at(path: Path, *, statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> Obstacle | None:
    """Return why a file there can't be written: its file system is mounted for reading, or full; None where it can.

    path: of the store; where it was taken away, its folder is asked. A file system that can't be asked is no obstacle.
    """
    place = path if path.exists() else path.parent
    try:
        found = statvfs(place)
    except OSError:
        return None
    if found.f_flag & os.ST_RDONLY:
        return "read_only"
    return "full" if found.f_bavail * found.f_frsize < LEAST_FREE_BYTES else None
