"""One owner per data directory: the second server stops and names the first.

The lock is the operating system's (flock), so it ends with its process however that ends; the file only carries the
holder's process id for the message.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["LOCK_NAME", "AlreadyOwned", "OwnerLock"]

LOCK_NAME: Final = "owner.lock"


class AlreadyOwned(Exception):
    """Another process serves this directory. `pid` is None where it couldn't be read."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{folder} is in use by {holder}; stop it first or choose another directory")
        self.folder = folder
        self.pid = pid


class OwnerLock:
    """A context manager that holds `folder` for this process. Makes the folder (0700) when missing."""

    def __init__(self, folder: Path, *, name: str = LOCK_NAME) -> None:
        self._folder = folder
        self._path = folder / name
        self._file: int | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    @staticmethod
    def holder_of(folder: Path, *, name: str = LOCK_NAME) -> AlreadyOwned | None:
        """Return who holds `folder`, None where nobody does. Nothing is made or written."""
        try:
            file = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return AlreadyOwned(folder, _written(file))
        finally:
            os.close(file)
        return None

    def acquire(self) -> None:
        """Take the lock. Raises AlreadyOwned."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(file)
        except OSError:
            pid = _written(file)
            os.close(file)
            raise AlreadyOwned(self._folder, pid) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


_TRIES = 10
_PAUSE_S = 0.02


def _lock(file: int) -> None:
    """Take the lock; whoever only asks who holds it (`holder_of`) has it for an instant, which is waited out."""
    for attempt in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if attempt == _TRIES - 1:
                raise
        time.sleep(_PAUSE_S)


def _written(file: int) -> int | None:
    text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
