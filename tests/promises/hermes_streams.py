"""What the connector promises about streams of events."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:streams:text-once",
        source="design D17; contract page §24.7",
        sentence="Text is what the grammar's own text events say; repeats in progress and reasoning never enter it.",
        diverges="The reference takes any string `delta`, so 0.19.0's repeats come twice.",
    ),
    Promise(
        id="hermes:streams:chunks",
        source="contract page §12; design D17",
        sentence="Each event is one chunk of its kind, in order, and exactly one `done` or `error` ends the stream.",
    ),
    Promise(
        id="hermes:streams:first-ending",
        source="contract page §11.6, §24.8; design D17",
        sentence="The first ending event is the end, also as the last allowed one; nothing after it is read.",
        diverges="The reference calls an ending that is the last allowed event truncated.",
    ),
    Promise(
        id="hermes:streams:no-end-no-success",
        source="design D17; field report F050",
        sentence="A stream without an ending event is incomplete, uncertain for a mutation, and keeps its text.",
    ),
    Promise(
        id="hermes:streams:failed",
        source="contract page §12, §24.19; design D19",
        sentence="An event that says that the work failed is `stream_failed`, its text bounded, without credentials.",
        diverges="The reference copies the event's data and calls a mutation's failure certain.",
    ),
    Promise(
        id="hermes:streams:cancelled",
        source="contract page §12",
        sentence="`run.cancelled` is a cancelled result, no failure.",
    ),
    Promise(
        id="hermes:streams:truncated",
        source="contract page §6.9, §11.7; conformance kit, streaming_backpressure",
        sentence="A stream that goes on after `max_events` is left as `stream_truncated`, with exactly these chunks.",
    ),
    Promise(
        id="hermes:streams:bounded-output",
        source="design D17; contract page §24.10",
        sentence="The output holds the first events and the last, at most 256 and 1 MiB, and counts the others.",
        diverges="The reference keeps every event twice.",
    ),
    Promise(
        id="hermes:streams:transcript",
        source="design D17, D23",
        sentence="The transcript that `run.completed` repeats is kept as a count and a hash.",
    ),
    Promise(
        id="hermes:streams:effective",
        source="design D15, D17; contract page §24.10",
        sentence="The output names the session in which the turn ended, as its last events say, and why it moved.",
    ),
    Promise(
        id="hermes:streams:large-ending",
        source="design D17; contract page §24.9",
        sentence="An ending event over the frame limit ends the stream by its name; its data is hashed, not kept.",
        diverges="The reference fails a finished turn.",
    ),
    Promise(
        id="hermes:streams:strange-data",
        source="issue 3; contract page §11.5",
        sentence="Whatever an endpoint puts into an event becomes JSON that can be stored and sent on.",
    ),
    Promise(
        id="hermes:streams:any-cut",
        source="issue 3; field report F049",
        sentence="However a stream is cut on its way, chunks, text and end are the same.",
    ),
    Promise(
        id="hermes:streams:one-send",
        source="design §8",
        sentence="A stream is asked for once, whatever becomes of it.",
    ),
    Promise(
        id="hermes:streams:not-a-stream",
        source="field report F052",
        sentence="A success of another media type or status is `not_a_stream`, before its body is read.",
    ),
    Promise(
        id="hermes:streams:stored-first",
        source="contract page §12, §13.1; design D11, D17",
        sentence="A chunk is stored before the next is read; one that can't be stored leaves the stream.",
    ),
    Promise(
        id="hermes:streams:idle",
        source="field report F053",
        sentence="Silence ends a stream at the idle limit; comments are life, and end with the deadline as uncertain.",
    ),
    Promise(
        id="hermes:streams:broken",
        source="contract page §13.1, §24.19; design D17",
        sentence="A stream that breaks off or passes a limit is uncertain for a mutation and keeps what had come.",
    ),
    Promise(
        id="hermes:streams:memory",
        source="issue 3",
        sentence="What a stream leaves in memory is bounded, however long it is.",
    ),
    Promise(
        id="hermes:streams:turn-evidence",
        source="design D20; field report F083",
        sentence="A streamed turn carries the same evidence as another, and an end without text is said to have none.",
    ),
    Promise(
        id="hermes:streams:leaving",
        source="design D17; contract page §15",
        sentence="Giving up a stream closes our connection at once; cancelling says whether the work goes on.",
    ),
    Promise(
        id="hermes:streams:stop",
        source="contract page §15",
        sentence="Cancelling the events of a run stops the run with one request, and says so where that failed.",
    ),
)
