"""A Hermes endpoint made of rules: the double of the connector kit, which every test of the connector uses."""

from aip_hermes.cli.conformance.double import (
    COMPLETION,
    JOB,
    KEY,
    RESPONSE,
    RUN,
    Arrived,
    Reply,
    StubEndpoint,
    reply_error,
    reply_json,
    reset,
    row_of,
)

__all__ = [
    "COMPLETION",
    "JOB",
    "KEY",
    "RESPONSE",
    "RUN",
    "Arrived",
    "Reply",
    "StubEndpoint",
    "reply_error",
    "reply_json",
    "reset",
    "row_of",
]
