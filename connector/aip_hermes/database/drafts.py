"""A file that appears whole or not at all: it is written under another name, and gets its own when it is durable."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["draft_beside", "publish", "sync_file", "sync_folder"]


def draft_beside(target: Path) -> Path:
    """Make an empty file of a new name in the folder of `target`, for its owner alone (0600)."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return draft


def publish(draft: Path, target: Path, *, force: bool) -> None:
    """Make a draft durable and give it the name of `target`; the name that it had may stay, for its writer to remove.

    force: replace a target that exists. Raises FileExistsError without.
    """
    sync_file(draft)
    if force:
        draft.replace(target)
    else:
        os.link(draft, target)
    sync_folder(target.parent)


def sync_file(path: Path) -> None:
    """Make the bytes of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
