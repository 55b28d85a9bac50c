"""The client library: one connection to an AIP server, its replies and its failures; and what applications build on.

The second half is loaded when it is first used: a command line needs the connection only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aip_hermes.client.action_reads import ActionReads, ApprovalStatus
from aip_hermes.client.connection import DEFAULT_PRINCIPAL, AipConnection
from aip_hermes.client.decisions import AlreadyDecided, NothingToRevoke, Verb, decision_on, revocation_of
from aip_hermes.client.envelopes import ActionMode, action_envelope, decision_envelope, principal_of
from aip_hermes.client.failures import (
    ClientFailure,
    ConnectionRefused,
    ConnectTimedOut,
    HttpFailed,
    NameNotResolved,
    NoAnswer,
    NotReachable,
    PeerError,
    StreamLost,
    TlsFailed,
    TooLarge,
    Undecodable,
    Unusable,
)
from aip_hermes.client.http import MAX_RESPONSE_BYTES, HttpAnswer, HttpConnection
from aip_hermes.client.receipts import chain_problems
from aip_hermes.client.records import RecordReads
from aip_hermes.client.reply import JsonObject, Outcome, Reply, outcome_of
from aip_hermes.client.streams import FrameKind, Patience, StreamFrame
from aip_hermes.client.token_file import TokenRefused, load_token

if TYPE_CHECKING:
    from aip_hermes.client.aip_client import AipClient
    from aip_hermes.client.aip_instructions import Found
    from aip_hermes.client.hermes_answers import HermesRefused
    from aip_hermes.client.hermes_client import KEEP, HermesClient
    from aip_hermes.client.hermes_objects import (
        Deleted,
        Message,
        Session,
        SessionListing,
        SessionPage,
        Transcript,
        Turn,
        TurnEvent,
    )
    from aip_hermes.client.identities import (
        CallIdentities,
        CallRecord,
        CallState,
        IdentityClash,
        IdentityStore,
        IdentityStoreFailed,
        Instruction,
    )
    from aip_hermes.client.identity_store import SqliteIdentityStore
    from aip_hermes.client.listings import (
        Approval,
        ApprovalPage,
        CapabilityPage,
        Decided,
        EventPage,
        Listed,
        Me,
        Progress,
    )
    from aip_hermes.client.results import ActionError, CallFailed, CallResult, Replay, SessionEffect
    from aip_hermes.client.resuming import Resumed, ResumeRefused
    from aip_hermes.client.verdicts import Reconciliation

__all__ = [
    "DEFAULT_PRINCIPAL",
    "KEEP",
    "MAX_RESPONSE_BYTES",
    "ActionError",
    "ActionMode",
    "ActionReads",
    "AipClient",
    "AipConnection",
    "AlreadyDecided",
    "Approval",
    "ApprovalPage",
    "ApprovalStatus",
    "CallFailed",
    "CallIdentities",
    "CallRecord",
    "CallResult",
    "CallState",
    "CapabilityPage",
    "ClientFailure",
    "ConnectTimedOut",
    "ConnectionRefused",
    "Decided",
    "Deleted",
    "EventPage",
    "Found",
    "FrameKind",
    "HermesClient",
    "HermesRefused",
    "HttpAnswer",
    "HttpConnection",
    "HttpFailed",
    "IdentityClash",
    "IdentityStore",
    "IdentityStoreFailed",
    "Instruction",
    "JsonObject",
    "Listed",
    "Me",
    "Message",
    "NameNotResolved",
    "NoAnswer",
    "NotReachable",
    "NothingToRevoke",
    "Outcome",
    "Patience",
    "PeerError",
    "Progress",
    "Reconciliation",
    "RecordReads",
    "Replay",
    "Reply",
    "ResumeRefused",
    "Resumed",
    "Session",
    "SessionEffect",
    "SessionListing",
    "SessionPage",
    "SqliteIdentityStore",
    "StreamFrame",
    "StreamLost",
    "TlsFailed",
    "TokenRefused",
    "TooLarge",
    "Transcript",
    "Turn",
    "TurnEvent",
    "Undecodable",
    "Unusable",
    "Verb",
    "action_envelope",
    "chain_problems",
    "decision_envelope",
    "decision_on",
    "load_token",
    "outcome_of",
    "principal_of",
    "revocation_of",
]

_HOMES = {
    "aip_hermes.client.aip_client": ("AipClient",),
    "aip_hermes.client.aip_instructions": ("Found",),
    "aip_hermes.client.hermes_answers": ("HermesRefused",),
    "aip_hermes.client.hermes_client": ("KEEP", "HermesClient",),
    "aip_hermes.client.hermes_objects": (
        "Deleted", "Message", "Session", "SessionListing", "SessionPage", "Transcript", "Turn", "TurnEvent",
    ),
    "aip_hermes.client.identities": (
        "CallIdentities", "CallRecord", "CallState", "IdentityClash", "IdentityStore", "IdentityStoreFailed",
        "Instruction",
    ),
    "aip_hermes.client.identity_store": ("SqliteIdentityStore",),
    "aip_hermes.client.listings": (
        "Approval", "ApprovalPage", "CapabilityPage", "Decided", "EventPage", "Listed", "Me", "Progress",
    ),
    "aip_hermes.client.results": ("ActionError", "CallFailed", "CallResult", "Replay", "SessionEffect",),
    "aip_hermes.client.resuming": ("ResumeRefused", "Resumed",),
    "aip_hermes.client.verdicts": ("Reconciliation",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
