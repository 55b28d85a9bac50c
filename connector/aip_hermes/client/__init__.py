"""The client library: one connection to an AIP server, its replies and its failures."""

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
)
from aip_hermes.client.http import MAX_RESPONSE_BYTES, HttpAnswer, HttpConnection
from aip_hermes.client.receipts import chain_problems
from aip_hermes.client.records import RecordReads
from aip_hermes.client.reply import JsonObject, Outcome, Reply, outcome_of
from aip_hermes.client.streams import FrameKind, Patience, StreamFrame
from aip_hermes.client.token_file import TokenRefused, load_token

__all__ = [
    "DEFAULT_PRINCIPAL",
    "MAX_RESPONSE_BYTES",
    "ActionMode",
    "AipConnection",
    "AlreadyDecided",
    "ClientFailure",
    "ConnectTimedOut",
    "ConnectionRefused",
    "FrameKind",
    "HttpAnswer",
    "HttpConnection",
    "HttpFailed",
    "JsonObject",
    "NameNotResolved",
    "NoAnswer",
    "NotReachable",
    "NothingToRevoke",
    "Outcome",
    "Patience",
    "PeerError",
    "RecordReads",
    "Reply",
    "StreamFrame",
    "StreamLost",
    "TlsFailed",
    "TokenRefused",
    "TooLarge",
    "Undecodable",
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
