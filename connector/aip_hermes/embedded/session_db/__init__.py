"""The durable session store of the embedded Hermes, in the names of hermes-agent's."""

from __future__ import annotations

from aip_hermes.embedded.session_db.conversation import repair_message_sequence
from aip_hermes.embedded.session_db.errors import (
    CompressionSessionClosedError,
    SessionExists,
    TitleRefused,
    UnknownSession,
)
from aip_hermes.embedded.session_db.grants import GrantStore
from aip_hermes.embedded.session_db.jobs import JobStore
from aip_hermes.embedded.session_db.responses import ResponseStore, StoredResponse
from aip_hermes.embedded.session_db.store import SessionDB
from aip_hermes.embedded.session_db.transcript import Usage

__all__ = [
    "CompressionSessionClosedError",
    "GrantStore",
    "JobStore",
    "ResponseStore",
    "SessionDB",
    "SessionExists",
    "StoredResponse",
    "TitleRefused",
    "UnknownSession",
    "Usage",
    "repair_message_sequence",
]
