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
    Promise(
        id="embedded:quirk:chat-ignores-continuation",
        source="API server §5.4; Sessions §10; design §7",
        sentence="With quirk chat-ignores-continuation a chat on a compressed id runs on that row's history and stays "
        "in it, unseen by the messages route.",
    ),
    Promise(
        id="embedded:quirk:turns-not-serialised",
        source="API server §4.3; Sessions §11; design §7",
        sentence="With quirk turns-not-serialised two chats of one session run at once and their rows interleave.",
    ),
    Promise(
        id="embedded:quirk:answers-on-failure",
        source="API server §8.1, §8.2; design §7",
        sentence="With quirk answers-on-failure a chat answers 200 for a failed model, an unreadable history and rows "
        "that were not stored.",
    ),
)
