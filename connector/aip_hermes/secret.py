"""A credential in memory, and the file that holds one.

A secret shows itself nowhere: not in repr, str, format, pickles or JSON. Who needs the text calls `reveal` next to the
place where it leaves the process.
"""

from __future__ import annotations

import hmac
import os
import stat
from pathlib import Path
from typing import NoReturn, final

__all__ = ["MAX_SECRET_BYTES", "Secret", "SecretFileError", "read_secret_file"]

MAX_SECRET_BYTES = 16_384


class SecretFileError(Exception):
    """A credential file that can't be used; the text names the file and the remedy, never its content."""


@final
class Secret:
    """One credential: 1–16,384 bytes as UTF-8, no white space and no control characters.

    Raises ValueError, naming the rule only.
    """

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"a {type(value).__name__} is no credential")
        try:
            size = len(value.encode("utf-8"))
        except UnicodeEncodeError:
            raise ValueError("a credential is valid Unicode text") from None
        if not 1 <= size <= MAX_SECRET_BYTES:
            raise ValueError(f"a credential is 1–{MAX_SECRET_BYTES} bytes")
        if any(c.isspace() or not c.isprintable() for c in value):
            raise ValueError("a credential has no white space and no control characters")
        self.__value = value

    def reveal(self) -> str:
        """Return the text."""
        return self.__value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__value.encode("utf-8"), other.reveal().encode("utf-8"))

    def __hash__(self) -> int:
        return hash((Secret, self.__value))

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is not serialised")


def read_secret_file(path: str | os.PathLike[str], *, max_bytes: int = MAX_SECRET_BYTES) -> Secret:
    """Read a credential from a file of its owner's.

    A regular file, no symlink, no permission for group or others, 1–`max_bytes` bytes of UTF-8; white space around the
    credential is trimmed. Raises SecretFileError. Source: HTTP surface §3.4.
    """
    file = Path(path)
    text = _read_owned(file, max_bytes).strip()
    if not text:
        raise SecretFileError(f"credential file {file} is empty")
    try:
        return Secret(text)
    except ValueError as exc:
        raise SecretFileError(f"credential file {file}: {exc}") from None


def _read_owned(file: Path, max_bytes: int) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        if file.is_symlink():
            raise SecretFileError(f"credential file {file} is a symbolic link; name the file itself") from None
        raise SecretFileError(f"credential file {file} can't be opened: {exc.strerror}") from None
    # The open file is examined, not the path: a path may name another file a moment later. A folder opens too.
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        os.close(descriptor)
        raise SecretFileError(f"credential file {file} is a folder, no regular file")
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(status.st_mode):
            raise SecretFileError(f"credential file {file} is no regular file")
        if status.st_mode & 0o077:
            raise SecretFileError(f"credential file {file} is open to others; run `chmod 600 {file}`")
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise SecretFileError(f"credential file {file} is larger than {max_bytes} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise SecretFileError(f"credential file {file} is no UTF-8 text") from None
