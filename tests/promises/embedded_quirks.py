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
    Promise(
        id="embedded:faults:connection",
        source="design §7; issue 5",
        sentence="A lost request changes nothing; a lost answer, one cut in its body and a gateway's page hide what "
        "was carried out.",
    ),
    Promise(
        id="embedded:faults:late",
        source="design §7; issue 5",
        sentence="A late answer is carried out before it is told, a late effect after the connection is gone.",
    ),
    Promise(
        id="embedded:faults:streams",
        source="design §7; issue 5",
        sentence="A stalled stream says one event and stays open; one without its terminal event ends in good order.",
    ),
    Promise(
        id="embedded:faults:locked",
        source="design §7, D11",
        sentence="While somebody else holds the store's write lock a write waits and is carried out when it opens, and "
        "reads go on; with a store that can't be used a request is 503 session_db_unavailable and changes nothing.",
    ),
    Promise(
        id="embedded:faults:counted",
        source="design §7",
        sentence="A fault meets as many requests of its operation as were asked for, in order, also together with a "
        "compression, and no request without the key.",
    ),
    Promise(
        id="embedded:faults:names",
        source="design §7",
        sentence="An unknown fault, an operation that it can't meet and a bad count are refused with what there is.",
    ),
    Promise(
        id="embedded:faults:command",
        source="design §7",
        sentence="`aip-hermes hermes --fault NAME:OPERATION:COUNT` serves with faults; a wrong one starts nothing.",
    ),
    Promise(
        id="embedded:compression:rotating",
        source="Sessions §10; API server §5.2; issue 5",
        sentence="A rotating compression on demand ends the row, and a child with its parent link, next title and a "
        "timestamped id holds summary and turn.",
    ),
    Promise(
        id="embedded:compression:in-place",
        source="Sessions §10; API server §5.2; issue 5",
        sentence="A compression in place on demand keeps the id, hides the old rows and counts the live ones.",
    ),
    Promise(
        id="embedded:page",
        source="design §7",
        sentence="The page on the embedded Hermes lists the quirks and faults of the code, and types what is accepted.",
    ),
)
