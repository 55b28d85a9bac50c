"""What the runtime promises about streams, events and cancellation."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="runtime:chunks:visible-while-running",
        source="design D17, conformance kit streaming_backpressure",
        sentence="A chunk can be read while its action still runs, and its event was stored with it.",
    ),
    Promise(
        id="runtime:chunks:none-after-the-end",
        source="design D17, D23",
        sentence="Only the attempt that runs adds chunks: what is said after its end, or under a lost lease, is not "
        "kept.",
    ),
    Promise(
        id="runtime:chunks:ordered",
        source="runtime behaviour §16",
        sentence="Chunks count from 0 without gaps, over attempts and restarts.",
    ),
    Promise(
        id="runtime:chunks:sync-too",
        source="runtime behaviour §4",
        sentence="A streaming capability publishes its chunks in mode sync as well.",
    ),
    Promise(
        id="runtime:chunks:survive",
        source="design §8",
        sentence="Chunks that were published survive a crash of the runtime, and the action becomes definite.",
    ),
    Promise(
        id="runtime:events:paging",
        source="runtime behaviour §16",
        sentence="Paging with any limit and kind repeats nothing, skips nothing and ends with terminal once.",
    ),
    Promise(
        id="runtime:events:page-cost",
        source="runtime behaviour §16",
        sentence="A page reads little more than it hands out, however long the log; one of rare kinds moves on.",
    ),
    Promise(
        id="runtime:events:cursor-errors",
        source="runtime behaviour §16",
        sentence="A malformed cursor and one behind the end of the log are refused with codes of their own.",
    ),
    Promise(
        id="runtime:events:no-text",
        source="design D19",
        sentence="The event of a chunk names its sequence and kind and none of its text.",
    ),
    Promise(
        id="runtime:cancel:before-dispatch",
        source="conformance kit cancellation_races",
        sentence="An action cancelled before dispatch sends nothing, is stored as cancelled and is certain.",
    ),
    Promise(
        id="runtime:cancel:just-claimed",
        source="runtime behaviour §10, design D22",
        sentence="A cancel that arrives between the claim and the first step stops the action before it sends.",
    ),
    Promise(
        id="runtime:cancel:last-moment",
        source="design D17",
        sentence="An action that was asked to stop before it was sent is never sent; once sent, it is not asked.",
    ),
    Promise(
        id="runtime:cancel:in-flight",
        source="conformance kit cancellation_races, design D17",
        sentence="A running stream is stopped at the provider once; the stored result is cancelled and uncertain.",
    ),
    Promise(
        id="runtime:cancel:late",
        source="conformance kit cancellation_races, design D8",
        sentence="Cancelling an action that has ended, or has its answer, returns the terminal result.",
    ),
    Promise(
        id="runtime:cancel:unsupported",
        source="design D17",
        sentence="What was sent and can't be stopped is not cancelled: the request is refused and the action goes on.",
    ),
    Promise(
        id="runtime:cancel:pending",
        source="issue 4, design D8",
        sentence="Cancelling a parked action ends its approval; nobody can approve it afterwards.",
    ),
    Promise(
        id="runtime:cancel:who",
        source="runtime behaviour §10",
        sentence="Only the owner, or who may write others' actions, cancels; another tenant's action is unknown.",
    ),
    Promise(
        id="runtime:cancel:key",
        source="runtime behaviour §10",
        sentence="A cancelled action settles its key, and its session is free for the next call.",
    ),
    Promise(
        id="runtime:queue:acknowledged",
        source="runtime behaviour §4, design D8",
        sentence="An asynchronous action is checked when it is submitted and acknowledged once it waits durably.",
    ),
    Promise(
        id="runtime:queue:runs-once",
        source="issue 3",
        sentence="A queued action runs once, in the order of the queue, also over restarts, and its result is stored.",
    ),
    Promise(
        id="runtime:queue:crash",
        source="design D4",
        sentence="A crash before the intent lets a queued action wait again; after it the outcome is unknown.",
    ),
    Promise(
        id="runtime:queue:delay",
        source="runtime behaviour §4",
        sentence="An action that waited longer than its service level fails, certain, and nothing is sent.",
    ),
    Promise(
        id="runtime:queue:cancel",
        source="design D8",
        sentence="Cancelling a queued action sends nothing and stores its cancelled result.",
    ),
)
