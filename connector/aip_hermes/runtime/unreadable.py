"""A stored approval that is none any more: a damaged row keeps nobody from the others, and says so when it is read.

The log names the approval and the kind of fault, never what was stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from aip_hermes.runtime.failures import ApprovalUnreadable

__all__ = ["UNREADABLE", "note_unreadable", "readable"]

log = structlog.get_logger(__name__)

UNREADABLE: Final = (ValueError, TypeError, KeyError)
"""What reading a stored object that is none raises; violations of a model are ValueErrors."""


@contextmanager
def readable(approval_id: str, *, advice: str) -> Iterator[None]:
    """Answer what can't be read as that. advice: what the caller may do about it.

    Raises: ApprovalUnreadable.
    """
    try:
        yield
    except UNREADABLE as exc:
        note_unreadable(approval_id, exc)
        raise ApprovalUnreadable(
            f"what is stored of approval {approval_id} can't be read; {advice}", details={"approval_id": approval_id}
        ) from None


def note_unreadable(approval_id: str, exc: Exception) -> None:
    """Tell the log of an approval that is left out of a list."""
    log.error("approval.unreadable", approval_id=approval_id, error_type=type(exc).__name__)
