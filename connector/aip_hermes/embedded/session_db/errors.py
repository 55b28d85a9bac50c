"""What the session store refuses, besides the failures of the database below it.

LookupError
└── UnknownSession                        no row has this id
ValueError
├── SessionExists                         the id of a new row is taken
├── TitleRefused                          too long, or held by another row
├── SessionResumeTooLargeError            more messages than a resume may load
└── SessionExportTooLargeError            more messages than an export may hold
RuntimeError
├── CompressionSessionClosedError         ended by a compression; `tip` is where the conversation goes on
├── CompressionSessionBusyError           the compression can't be published now
│   └── SessionCompressionInProgressError another holder compresses this session
├── SessionTurnLeaseLostError             another writer has the conversation
├── ConversationTaken                     a turn can't begin: another holder has its lease
└── ConversationMoved                     a turn can't begin: the conversation went on since it was read
"""

from __future__ import annotations

from typing import Final, Literal

from aip_hermes.database import StoreUnavailable

__all__ = [
    "CompressionSessionBusyError",
    "CompressionSessionClosedError",
    "ConversationMoved",
    "ConversationTaken",
    "SessionCompressionInProgressError",
    "SessionExists",
    "SessionExportTooLargeError",
    "SessionFailure",
    "SessionResumeTooLargeError",
    "SessionTurnLeaseLostError",
    "TitleRefused",
    "UnknownSession",
    "classify_session_failure",
]

SessionFailure = Literal["locked", "compression", "compression_closed", "turn_lease", "corrupt", "disk", "unknown"]


class UnknownSession(LookupError):
    """No row has this id; nothing was written."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Unknown session: {session_id}")
        self.session_id = session_id


class SessionExists(ValueError):
    """A row already has the id that a new one was to get."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session already exists: {session_id}")
        self.session_id = session_id


class TitleRefused(ValueError):
    """A title too long, or in use. `holder` is the id of the row that has it."""

    def __init__(self, message: str, *, holder: str | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class SessionResumeTooLargeError(ValueError):
    """A lineage has more live messages than a resume may load."""

    def __init__(self, session_id: str, *, message_count: int, limit: int) -> None:
        super().__init__(
            f"Session {session_id} has {message_count} messages in its lineage, a resume loads at most {limit}; "
            "read it in pages, or compress it"
        )
        self.session_id = session_id
        self.message_count = message_count
        self.limit = limit


class SessionExportTooLargeError(ValueError):
    """A session has more live messages than one export may hold."""

    def __init__(self, session_id: str, *, message_count: int, limit: int) -> None:
        super().__init__(
            f"Session {session_id} has {message_count} messages, an export holds at most {limit}; read it in pages"
        )
        self.session_id = session_id
        self.message_count = message_count
        self.limit = limit


class CompressionSessionClosedError(RuntimeError):
    """The row was ended by a compression and takes no more messages; `tip` is where the conversation goes on."""

    def __init__(self, session_id: str, *, tip: str) -> None:
        super().__init__(f"Session {session_id} was closed by a compression; its continuation is {tip}")
        self.session_id = session_id
        self.tip = tip


class CompressionSessionBusyError(RuntimeError):
    """A compression could not be published: its session ended meanwhile, or its lease was lost. Nothing changed."""

    def __init__(self, session_id: str, message: str | None = None) -> None:
        super().__init__(message or f"Session {session_id} can't be compressed now; try again after its turn")
        self.session_id = session_id


class SessionCompressionInProgressError(CompressionSessionBusyError):
    """Another holder compresses this session right now."""


class SessionTurnLeaseLostError(RuntimeError):
    """The writer no longer has the lease of the conversation; nothing was written."""

    def __init__(self, session_id: str, message: str | None = None) -> None:
        super().__init__(
            message
            or f"The turn lease of session {session_id} is no longer held; load the session again before writing"
        )
        self.session_id = session_id


class ConversationTaken(RuntimeError):
    """Another holder has the turn lease of the conversation; nothing was written."""


class ConversationMoved(RuntimeError):
    """The conversation is not what it was when it was read; nothing was written."""


_CLASSES: Final[tuple[tuple[type[Exception], SessionFailure], ...]] = (
    (CompressionSessionClosedError, "compression_closed"),
    (CompressionSessionBusyError, "compression"),
    (SessionTurnLeaseLostError, "turn_lease"),
)
_KINDS: Final[dict[str, SessionFailure]] = {"locked": "locked", "corrupt": "corrupt", "disk_full": "disk", "io": "disk"}


def classify_session_failure(error: BaseException) -> SessionFailure:
    """Return what kind of failure of the store this is; the causes of `error` are looked at, too."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        for kind, name in _CLASSES:
            if isinstance(seen, kind):
                return name
        if isinstance(seen, StoreUnavailable) and seen.kind in _KINDS:
            return _KINDS[seen.kind]
        seen = seen.__cause__ or seen.__context__
    return "unknown"
