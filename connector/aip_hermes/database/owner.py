"""One owner per data directory: the second server stops and names the first.

The lock is the operating system's (flock), so it ends with its process however that ends; the file only carries the
holder's process id for the message.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["AlreadyOwned", "OwnerLock"]


class AlreadyOwned(Exception):
    """Another process serves this directory. `pid` is None where it couldn't be read."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{folder} is in use by {holder}; stop it first or choose another directory")
        self.folder = folder
        self.pid = pid


class OwnerLock:
    """A context manager that holds `folder` for this process. Makes the folder (0700) when missing."""

    def __init__(self, folder: Path, *, name: str = "owner.lock") -> None:
        self._folder = folder
        self._path = folder / name
        self._file: int | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock. Raises AlreadyOwned."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = os.read(file, 32).decode("ascii", "replace").strip()
            os.close(file)
            raise AlreadyOwned(self._folder, int(text) if text.isdigit() else None) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
