"""What the session store refuses, besides the failures of the database below it."""

from __future__ import annotations

__all__ = ["CompressionSessionClosedError", "SessionExists", "TitleRefused", "UnknownSession"]


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


class CompressionSessionClosedError(RuntimeError):
    """The row was ended by a compression and takes no more messages; `tip` is where the conversation goes on."""

    def __init__(self, session_id: str, *, tip: str) -> None:
        super().__init__(f"Session {session_id} was closed by a compression; its continuation is {tip}")
        self.session_id = session_id
        self.tip = tip
