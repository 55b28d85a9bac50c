"""What the embedded Hermes promises about its routes besides sessions: jobs, listings, completions, responses, runs."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_API = "API server §"

PROMISES = (
    Promise(
        id="hermes_api:schedule:forms",
        source=_API + "7",
        sentence="A schedule is a delay, an interval, a cron text of five fields or an ISO time; each has its display.",
    ),
    Promise(
        id="hermes_api:schedule:next",
        source=_API + "7",
        sentence="The next moment of a schedule is exact over ranges, steps, month ends, leap days and two day fields.",
    ),
    Promise(
        id="hermes_api:schedule:refused",
        source=_API + "2.3, §7",
        sentence="What is no schedule, waits for nothing, lies in the past or never comes is refused.",
    ),
    Promise(
        id="embedded:listings:shapes",
        source=_API + "6.1",
        sentence="Skills and toolsets list what the agent has: no skills, one set with its one tool.",
    ),
    Promise(
        id="embedded:jobs:life",
        source=_API + "7",
        sentence="A job is made, listed, read, changed, paused, resumed, set to run now and deleted, each with its "
        "documented answer.",
    ),
    Promise(
        id="embedded:jobs:refused",
        source=_API + "2.3, §7; design §7",
        sentence="A bad job or change is 400 with a text, an unknown one 404; nothing is stored or changed.",
        diverges="0.19.0 answers 500 for bad JSON, wrong types and bad schedules.",
    ),
    Promise(
        id="embedded:jobs:durable",
        source="design §6; issue 3",
        sentence="Jobs outlive their server, in the file of the sessions; an older file is migrated.",
    ),
    Promise(
        id="embedded:completions:answer",
        source=_API + "6.2",
        sentence="A completion has OpenAI's form; the model name asked for is repeated and chooses nothing.",
    ),
    Promise(
        id="embedded:completions:session",
        source=_API + "1.4, §6.2",
        sentence="The session header continues, or makes, a session on its stored history; else the opening names one "
        "and the sent history is read.",
    ),
    Promise(
        id="embedded:completions:refused",
        source=_API + "2.2, §6.2",
        sentence="Bad messages and headers are 400 before anything is stored.",
        diverges="0.19.0 answers 500 to a body or message that is no object.",
    ),
    Promise(
        id="embedded:completions:failed",
        source="design §7",
        sentence="A failed model is 502 model_failed; in a stream the last chunk has finish reason error and the code.",
        diverges="0.19.0 answers 200 with the failure as text.",
    ),
    Promise(
        id="embedded:completions:stream",
        source=_API + "6.2",
        sentence="A streamed completion tells role, text, tools, an end with usage, and `[DONE]`.",
    ),
    Promise(
        id="embedded:completions:leaves",
        source="design §7; " + _API + "8.3; field report F046",
        sentence="A client that leaves a streamed completion interrupts it; the partial text is an interrupted row.",
    ),
    Promise(
        id="embedded:repeats:kept",
        source=_API + "6.2",
        sentence="An idempotency key repeats the answer under a new id for 300 s.",
    ),
    Promise(
        id="embedded:repeats:other",
        source=_API + "6.2",
        sentence="Another request under a key, also one for another session, runs and takes its place.",
    ),
    Promise(
        id="embedded:repeats:in-flight",
        source=_API + "6.2",
        sentence="Equal requests in flight under one key share one run.",
    ),
    Promise(
        id="embedded:repeats:failed",
        source="design §7",
        sentence="A failure is not kept under its key.",
    ),
    Promise(
        id="embedded:limit:runs",
        source=_API + "4.3, §9",
        sentence="Beyond the cap of turns at once the /v1 agent routes answer 429 with Retry-After 1; chat is not "
        "limited.",
    ),
    Promise(
        id="embedded:responses:answer",
        source=_API + "6.3",
        sentence="A response has OpenAI's form; its turn is stored in a session of its own, named by a header.",
    ),
    Promise(
        id="embedded:responses:kept",
        source=_API + "6.3; design §6",
        sentence="At most 100 responses are kept, durably, the one used longest ago goes first; delete answers once.",
    ),
    Promise(
        id="embedded:responses:chain",
        source=_API + "6.3",
        sentence="A response that names the previous one keeps its session, its history and its instructions; an "
        "unknown one is 404.",
    ),
    Promise(
        id="embedded:responses:conversation",
        source=_API + "6.3; design §7",
        sentence="A named conversation goes on in order, one response after the other, and begins anew after a delete.",
    ),
    Promise(
        id="embedded:responses:input",
        source=_API + "6.3",
        sentence="Input is text or a list of texts and messages; history may be sent and cut to its last 100 messages.",
    ),
    Promise(
        id="embedded:responses:refused",
        source=_API + "2.2, §6.3",
        sentence="Bad input is 400 before anything is stored.",
        diverges="0.19.0 answers 500 to a body that is no object and to values of another type.",
    ),
    Promise(
        id="embedded:responses:repeat",
        source=_API + "6.2",
        sentence="A repeated response has an id of its own, can be read, and names the session that holds the turn.",
        diverges="0.19.0 names a session that does not exist.",
    ),
    Promise(
        id="embedded:responses:failed",
        source="design §7",
        sentence="A failed model is 502, in a stream response.failed; a response that can't be kept is 500 "
        "reply_not_stored.",
        diverges="0.19.0 answers status completed with the failure as text.",
    ),
    Promise(
        id="embedded:responses:stream",
        source=_API + "6.3",
        sentence="A streamed response tells its items in order, numbered from 0, and ends with the object that a "
        "GET answers.",
    ),
    Promise(
        id="embedded:responses:tools",
        source=_API + "6.3",
        sentence="Calls and results of tools are output items before the message.",
    ),
    Promise(
        id="embedded:responses:leaves",
        source="field report F046; design §7",
        sentence="A response whose reader left is completed, kept, and ordered before the next of its conversation.",
        diverges="0.19.0 keeps it as incomplete.",
    ),
    Promise(
        id="embedded:stream:events",
        source=_API + "4.2",
        sentence="A streamed turn tells run.started, message.started, deltas, assistant.completed, run.completed "
        "and done, numbered from 1.",
    ),
    Promise(
        id="embedded:stream:tools",
        source=_API + "3.7, §4.2",
        sentence="Tool calls are told as they begin and end, and stored as an assistant row with the call and a row "
        "with its result.",
    ),
    Promise(
        id="embedded:agent:nobody",
        source=_API + "4.5",
        sentence="Where there is nobody to ask, a tool that needs a decision tells the model so and the turn goes on.",
    ),
    Promise(
        id="embedded:stream:refused",
        source=_API + "4.2",
        sentence="What is wrong with a request is answered as JSON before the stream begins.",
    ),
    Promise(
        id="embedded:stream:failed",
        source="design §7; field report F082",
        sentence="A failure inside a stream is an error event with its code, then done; never a completion.",
        diverges="0.19.0 tells a completion with the failure as text.",
    ),
    Promise(
        id="embedded:stream:leaves",
        source=_API + "8.3; field report F046",
        sentence="A turn whose reader left runs to its end, is stored, and the next one waits for it.",
    ),
    Promise(
        id="embedded:stream:keepalive",
        source=_API + "4.2; field report F053",
        sentence="After each 30 s of silence a stream has a comment.",
    ),
    Promise(
        id="embedded:stream:tip",
        source=_API + "4.2; field report F001",
        sentence="After a compression the header and the first events name the asked row, the last events the one "
        "that holds the turn.",
    ),
    Promise(
        id="embedded:stream:shutdown",
        source="design §7",
        sentence="A turn that a server stops keeps its partial text as an interrupted row.",
    ),
    Promise(
        id="embedded:runs:life",
        source=_API + "6.4",
        sentence="A run is started with 202, can be looked at while it runs and afterwards, and is stored in a "
        "session.",
    ),
    Promise(
        id="embedded:runs:events",
        source=_API + "6.4",
        sentence="The events of a run are data without names: text, tools, approvals, then its end, then a closing "
        "comment.",
    ),
    Promise(
        id="embedded:runs:session",
        source=_API + "6.4",
        sentence="A run reads the history that was sent or the previous response's, not the stored one, and stores "
        "in the session it names.",
    ),
    Promise(
        id="embedded:runs:refused",
        source="design §7",
        sentence="A run with bad input, an unsafe session id or an unknown previous response is refused.",
        diverges="0.19.0 takes any session id and ignores an unknown response.",
    ),
    Promise(
        id="embedded:runs:failed",
        source="design §7; " + _API + "8.1",
        sentence="A failed model ends a run as failed, with the reason in status and event.",
    ),
    Promise(
        id="embedded:runs:approval",
        source=_API + "6.4",
        sentence="A run asks for an approval and goes on with the answer; a denied tool does not end it.",
    ),
    Promise(
        id="embedded:runs:approval-times-out",
        source=_API + "6.4; field report F067",
        sentence="An approval that nobody answers within 60 s counts as denied.",
    ),
    Promise(
        id="embedded:runs:approval-lasts",
        source=_API + "6.4",
        sentence="The choice session covers the session, always every session, also after a restart and in chat.",
    ),
    Promise(
        id="embedded:runs:approval-refused",
        source=_API + "2.2",
        sentence="Another choice is 400, a run that asks nothing or is over 409, an unknown run 404.",
    ),
    Promise(
        id="embedded:runs:stop",
        source=_API + "6.4; design §7",
        sentence="A stopped run is cancelled, also out of a question or a queue; partial text is kept and the "
        "session goes on.",
    ),
    Promise(
        id="embedded:runs:one-reader",
        source=_API + "6.4",
        sentence="Events go to one reader, a second one gets 404, and a reader that leaves stops nothing.",
    ),
    Promise(
        id="embedded:runs:forgotten",
        source=_API + "5.6, §6.4",
        sentence="Unread events are kept for 300 s, a run for an hour after its end, nothing over a restart.",
    ),
    Promise(
        id="embedded:model:streams",
        source="design §7; field report F049",
        sentence="A model gives its text as it comes, then the whole; a reply cut off or empty is ModelFailed.",
    ),
    Promise(
        id="embedded:model:tools",
        source="issue 3",
        sentence="Tool calls are put together from their parts; calls and results of the history are sent back.",
    ),
    Promise(
        id="embedded:model:again",
        source="issue 3",
        sentence="A model is asked up to three times while it can't be reached or is busy, never after its first word.",
    ),
    Promise(
        id="embedded:model:offline-calls",
        source="design §7",
        sentence="The offline model calls the tools that lines of the last paragraph name, one after the other, also "
        "in the texts of a JSON object.",
    ),
    Promise(
        id="embedded:agent:broken-call",
        source=_API + "8.1",
        sentence="An unknown tool or broken arguments are a result for the model; the turn goes on.",
    ),
    Promise(
        id="embedded:agent:open-call",
        source=_API + "4.4",
        sentence="A stored call without a result gets a made-up one in the request only.",
    ),
    Promise(
        id="embedded:agent:endless",
        source="design §7",
        sentence="A model that calls tools thirty times without an end has failed.",
    ),
    Promise(
        id="embedded:routes:any-json",
        source="design §7; field report F007",
        sentence="Any JSON value in any member is taken or refused with 4xx, on every route; none is a 5xx.",
        diverges="0.19.0 answers plain 500 to many of them.",
    ),
)
