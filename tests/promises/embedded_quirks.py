"""Behaviours of release 0.19.0 and faults of a network, which the embedded endpoint shows on demand."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

PROMISES = (
    Promise(
        id="embedded:quirk:unchecked-fork-id",
        source="API server §3.8; design §7",
        sentence="With quirk unchecked-fork-id a fork takes ids with slashes, with `..` and of 300 characters; without "
        "it, none of them.",
    ),
)
