"""Leases and compression of the session store."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

PROMISES = (
    Promise(
        id="session_db:lease:one-holder",
        source="Sessions §11, §16.13",
        sentence="A conversation has one turn lease, whichever row of its compression chain is named and also before "
        "its row exists.",
        diverges="Releases take no lease for the first turn of a new id.",
    ),
    Promise(
        id="session_db:lease:takeover",
        source="Sessions §11, §16.13",
        sentence="A turn lease is taken over when its time is over, or when its process is gone, and never before.",
    ),
    Promise(
        id="session_db:lease:waiting",
        source="Sessions §11",
        sentence="A wait for a lease says how long it waits, ends with its time or when it is called off, and holds "
        "nothing after a cancel.",
    ),
    Promise(
        id="session_db:lease:fencing",
        source="Sessions §4, §11, §16.13",
        sentence="A write that names a holder without the lease writes nothing and fails with "
        "SessionTurnLeaseLostError.",
    ),
    Promise(
        id="session_db:lease:chain-only",
        source="Sessions §11 (cost of the guard)",
        sentence="The guard of a write looks at the rows of its own chain, however many sessions there are.",
        diverges="Releases read every session row for each guarded write.",
    ),
    Promise(
        id="session_db:lease:two-processes",
        source="Sessions §16.13; issue 6",
        sentence="Two processes that take turns of one conversation at once never have its lease at the same time.",
    ),
    Promise(
        id="session_db:compression:lock",
        source="Sessions §10",
        sentence="Two compressors of one session are kept apart, and a compression whose lock was lost is not "
        "published.",
    ),
    Promise(
        id="session_db:compression:in-place",
        source="Sessions §10, §16.12",
        sentence="A compaction in place hides the old rows, keeps them readable, counts the live ones, and puts what "
        "was appended meanwhile behind.",
    ),
    Promise(
        id="session_db:compression:row-ids",
        source="Sessions §10 (lesson)",
        sentence="Whether a message is stored already is decided by its row id: copies of messages are not stored "
        "twice.",
    ),
    Promise(
        id="session_db:compression:rotation",
        source="Sessions §10, §16.12",
        sentence="A rotation ends the parent and publishes a child that holds the conversation, with its title, who it "
        "belongs to and what was appended meanwhile.",
    ),
    Promise(
        id="session_db:compression:atomic",
        source="Sessions §10, §16.12",
        sentence="A rotation or compaction that fails at any of its statements leaves every row as it was.",
    ),
    Promise(
        id="session_db:compression:refused",
        source="Sessions §10",
        sentence="An empty handoff, an unknown or ended parent and a taken child id refuse a compression, and nothing "
        "changes.",
    ),
    Promise(
        id="session_db:compression:cooldown",
        source="Sessions §10",
        sentence="A failed summary is noted on the row with a time to wait and a streak, and a published compression "
        "forgets it.",
    ),
)
