"""What the client for applications and the client of an endpoint promise."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="app:identities:kept-first",
        source="design §3 step 1; field report F014; issue 5",
        sentence="Endpoint, capability, Action ID, key, session id and session key of a consequential call are durable "
        "before its first byte leaves, and a SIGKILL at any moment leaves them to be found.",
        diverges="No existing client keeps them for the application.",
    ),
    Promise(
        id="app:identities:no-store-no-send",
        source="issue 5",
        sentence="A store that can't take the identities down (full, read-only, foreign, in the way) stops the call "
        "before anything is sent.",
    ),
    Promise(
        id="app:identities:always-said",
        source="issue 5; design §1",
        sentence="With a store or without, every result and every failure of a call names its identities; what the "
        "caller did not choose is made before sending.",
    ),
    Promise(
        id="app:identities:never-mixed",
        source="design §1; field report F005",
        sentence="An identity that contradicts the input, has no place in it, or already stands for another call is "
        "refused before anything is sent.",
    ),
    Promise(
        id="app:identities:shared-file",
        source="issue 5",
        sentence="Processes that share one file of identities lose no record of each other's, and of one Action ID "
        "with two contents one is refused.",
    ),
    Promise(
        id="app:identities:no-text",
        source="design D19, D23",
        sentence="A file of identities is its owner's alone and holds no input, transcript, reasoning, tool payload or "
        "credential.",
    ),
    Promise(
        id="app:identities:owner-alone",
        source="issue 5; design D19",
        sentence="A file of identities is 0600, with its log and its index, also where an empty file was there before.",
    ),
    Promise(
        id="app:instructions:kept-first",
        source="issue 5; design §3 step 1, D9",
        sentence="A decision's id, verb, time and policy hash, and a request to cancel, are durable before the first "
        "byte leaves and are found by whoever comes after a SIGKILL; their reasons are kept as a hash only.",
    ),
    Promise(
        id="app:instructions:resumed",
        source="issue 5; design D8, D9",
        sentence="What became of a decision or a cancel whose answer is lost is found by reads; said again, it is the "
        "very same and takes effect once.",
    ),
    Promise(
        id="app:answer:survives-store",
        source="second look at issue 5",
        sentence="An answer that the store can't take down is returned all the same, says so, and is found again.",
    ),
    Promise(
        id="app:call:reads-repeated-only",
        source="design D22; field report F016",
        sentence="A read is tried again after a failure that may pass, as the same action; a consequential call leaves "
        "once, whatever comes back.",
    ),
    Promise(
        id="app:call:time",
        source="issue 5; design D18",
        sentence="A call waits as long as the caller says, else as long as its capability publishes and 30 s; what is "
        "given up then is uncertain.",
    ),
    Promise(
        id="app:failure:next-step",
        source="style anchors 2.4; issue 5",
        sentence="A failure carries code, category, retryable and uncertain; an uncertain one says how to look the "
        "action up.",
    ),
    Promise(
        id="app:result:typed",
        source="issue 5; design D1, D7, D15",
        sentence="A result says outcome, error, approval, what became of the session, and of a replay whose it is; "
        "`completed` raises for everything that is not.",
    ),
    Promise(
        id="app:reads:typed",
        source="issue 5",
        sentence="`me`, catalogue, status, events, stream and approvals are typed and keep what they do not know.",
    ),
    Promise(
        id="app:reads:named-member",
        source="field report F101",
        sentence="An answer without its list or object is a failure that names the missing member, never nothing.",
    ),
    Promise(
        id="app:resume:asks",
        source="issue 5; design D3",
        sentence="A call without a known end is resumed by reads: settled, pending, running, uncertain or never "
        "received, kept in the store.",
    ),
    Promise(
        id="app:resume:same-submission",
        source="design D3",
        sentence="Only with the very input of the call, and only while the server remembers its key, is the same "
        "submission sent again; it runs once.",
    ),
    Promise(
        id="app:reconcile:kept",
        source="design §5; issue 5",
        sentence="A verdict is typed, is kept beside its call, which it settles where it is proven, and is not taken "
        "back by asking for the action again.",
    ),
    Promise(
        id="app:wait:decision",
        source="issue 5",
        sentence="`wait` returns the end of a call as soon as a reviewer decided, and a time that is up stops nothing.",
    ),
    Promise(
        id="endpoint:routes",
        source="Hermes API server §3, §4; issue 5",
        sentence="Every session route of an endpoint is a typed method that needs no AIP; ids travel exactly.",
    ),
    Promise(
        id="endpoint:unknown-members",
        source="issue 5",
        sentence="Members that a release adds are kept, in `raw` and in `extra`.",
    ),
    Promise(
        id="endpoint:envelope",
        source="field report F101",
        sentence="A list in another envelope is a failure that names the missing `data`, never an empty list.",
    ),
    Promise(
        id="endpoint:list-all",
        source="field report F106",
        sentence="`list_all` returns each session once, ends, and says when the list changed while it was read.",
    ),
    Promise(
        id="endpoint:certain-means-proven",
        source="design D11",
        sentence="What an endpoint's answer proves about a change is judged as the connector judges it, and a read is "
        "never uncertain.",
    ),
    Promise(
        id="endpoint:one-send",
        source="design D22; field report F016",
        sentence="What may change something is sent once; reads are tried again.",
    ),
    Promise(
        id="endpoint:stream",
        source="design D17; field report theme 4",
        sentence="A streamed turn hands out its events to the terminal one; an end without one is uncertain.",
    ),
    Promise(
        id="endpoint:new-ids",
        source="design D12; field report F014",
        sentence="Who creates or forks names the new session, by the rules for new ids, before anything is sent.",
    ),
    Promise(
        id="client:misuse:one-loop",
        source="issue 5 (one API that cannot be used wrongly)",
        sentence="A client that is closed, or belongs to another event loop, sends nothing and says so: certain.",
    ),
    Promise(
        id="client:misuse:times",
        source="issue 5 (timeouts in seconds as arguments)",
        sentence="A time of zero, a negative one and NaN are refused before anything is kept or sent.",
    ),
    Promise(
        id="client:misuse:address",
        source="issue 5 (one API that cannot be used wrongly)",
        sentence="A URL whose port is none is refused when the client is made.",
    ),
    Promise(
        id="client:misuse:no-action",
        source="issue 5 (identities persisted before each consequential call); design D19",
        sentence="What can't be sent as an action is refused before it is kept, in words that do not show its values.",
    ),
    Promise(
        id="client:misuse:kinds",
        source="issue 5 (caller-chosen identities); design §1",
        sentence="An identity of one kind in the place of another is refused, also where nobody checked the types, and "
        "so is a new session's id in a call that makes none.",
    ),
    Promise(
        id="endpoint:session-key",
        source="design D12, D19",
        sentence="A session key leaves as the connector sends it, in UTF-8 and trimmed; one that no header can carry "
        "is refused without being shown.",
    ),
    Promise(
        id="docs:python",
        source="issue 5",
        sentence="The Python examples of the how-to run as they stand.",
    ),
)
