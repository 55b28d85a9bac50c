"""The durable session store of the embedded Hermes, in the names of hermes-agent's."""

from __future__ import annotations

from aip_hermes.embedded.session_db.conversation import repair_message_sequence
from aip_hermes.embedded.session_db.errors import (
    CompressionSessionBusyError,
    CompressionSessionClosedError,
    ConversationMoved,
    ConversationTaken,
    SessionCompressionInProgressError,
    SessionExists,
    SessionExportTooLargeError,
    SessionFailure,
    SessionResumeTooLargeError,
    SessionTurnLeaseLostError,
    TitleRefused,
    UnknownSession,
    classify_session_failure,
)
from aip_hermes.embedded.session_db.grants import GrantStore
from aip_hermes.embedded.session_db.ground import TurnGround
from aip_hermes.embedded.session_db.jobs import JobStore
from aip_hermes.embedded.session_db.responses import ResponseStore, StoredResponse
from aip_hermes.embedded.session_db.store import SessionDB
from aip_hermes.embedded.session_db.usage import Usage

__all__ = [
    "CompressionSessionBusyError",
    "CompressionSessionClosedError",
    "ConversationMoved",
    "ConversationTaken",
    "GrantStore",
    "JobStore",
    "ResponseStore",
    "SessionCompressionInProgressError",
    "SessionDB",
    "SessionExists",
    "SessionExportTooLargeError",
    "SessionFailure",
    "SessionResumeTooLargeError",
    "SessionTurnLeaseLostError",
    "StoredResponse",
    "TitleRefused",
    "TurnGround",
    "UnknownSession",
    "Usage",
    "classify_session_failure",
    "repair_message_sequence",
]
