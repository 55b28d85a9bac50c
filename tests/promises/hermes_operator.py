"""What the operator promises: one run per action, bound, followed, resumed and stopped."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:operator:one-start",
        source="contract page §18.2, 2; issue 3",
        sentence="However often and concurrently an action is called, its run is started at most once.",
    ),
    Promise(
        id="hermes:operator:bound-before",
        source="contract page §18.2; design D4",
        sentence="The binding with its claim is durable before the start is sent; without a store nothing is sent.",
    ),
    Promise(
        id="hermes:operator:start-body",
        source="contract page §18.2, 2",
        sentence="The run gets the objective as one JSON text, our instructions and a session named after the action.",
    ),
    Promise(
        id="hermes:operator:other-request",
        source="contract page §18.2, 1",
        sentence="An Action ID that stands for another request is refused as operator_policy and sends nothing.",
    ),
    Promise(
        id="hermes:operator:start-failed",
        source="contract page §18.2, 3; design D11",
        sentence="A refused start is operator_start_rejected, certain; what is outside of the request keeps its own "
        "class and may be sent again; everything else is operator_outcome_unknown and never sent again.",
        diverges="The reference calls 401, 403 and 429 rejected starts too, and frees no key.",
    ),
    Promise(
        id="hermes:operator:events",
        source="contract page §18.2, 4",
        sentence="A run's events are chunks of their kinds with the event in hermes_operator; deltas are its text.",
    ),
    Promise(
        id="hermes:operator:polling",
        source="contract page §18.2, 4",
        sentence="Where the events are gone, break off, say nothing of the end or are more than the policy reads, the "
        "status is read until it says the end.",
    ),
    Promise(
        id="hermes:operator:unknown-state",
        source="contract page §18.2, 4",
        sentence="A state that is none of those known, a forgotten run and an ended time are uncertain failures.",
    ),
    Promise(
        id="hermes:operator:ends",
        source="contract page §18.2 (output)",
        sentence="The result says where the run stands in the published form, also where it failed.",
    ),
    Promise(
        id="hermes:operator:requires-human",
        source="contract page §18.2, 5; design D19",
        sentence="A run that asks for an approval ends its action as requires_human, never as completed; the binding "
        "keeps a hash of the question, not its words.",
    ),
    Promise(
        id="hermes:operator:no-text-kept",
        source="design D19, D23",
        sentence="A binding holds nothing of a run's text, its question or its events, whatever the endpoint says; so "
        "what is erased is erased.",
        diverges="The reference keeps the whole output and the whole question in its binding.",
    ),
    Promise(
        id="hermes:operator:own-run",
        source="design §8",
        sentence="An event or a status that names another run is never taken for the end or the question of ours.",
    ),
    Promise(
        id="hermes:operator:resume",
        source="contract page §18.2, 5",
        sentence="A resume answers once, as a new action, and goes on to the end or to the next question.",
    ),
    Promise(
        id="hermes:operator:resume-bound",
        source="design D25",
        sentence="The decision about an answer binds the question that waited when it was asked for; a later question "
        "of the same run is not answered with it.",
        diverges="The reference binds the input alone, which names the run and no question.",
    ),
    Promise(
        id="hermes:operator:resume-refused",
        source="contract page §18.2, 5; design D18",
        sentence="A resume of no run of the caller, of one that does not wait, beside another answer or beyond 256 of "
        "them is operator_policy and answers nothing.",
    ),
    Promise(
        id="hermes:operator:resume-uncertain",
        source="contract page §18.2, 5",
        sentence="An answer that may have arrived makes the whole run outcome_unknown; one that was refused leaves it "
        "waiting.",
    ),
    Promise(
        id="hermes:operator:interrupted",
        source="contract page §18.2, 3, 4, 6; design D4",
        sentence="An interrupted action that is taken up again only reads: it follows a bound run behind the last "
        "event kept, answers a kept end, and is unknown where the start may have happened.",
    ),
    Promise(
        id="hermes:operator:cancel",
        source="contract page §18.4",
        sentence="A cancel is noted, stops the run once and waits for its end; a run that does not end in time is "
        "unknown, one that was over is left alone.",
    ),
    Promise(
        id="hermes:operator:policy",
        source="contract page §18.1",
        sentence="The policy's numbers, texts and prefixes are bounded; candidates outside of the allowed prefixes and "
        "inputs over the size are refused before anything is stored or sent.",
    ),
    Promise(
        id="settings:operator:policy",
        source="contract page §18.1",
        sentence="The table [operator] has every member of the policy with its default and bounds, and refuses what is "
        "out of them by one sentence.",
    ),
    Promise(
        id="settings:operator:no-delegation",
        source="contract page §18.3; design D8",
        sentence="Settings that turn delegation on are refused: there is no peer to delegate to.",
        diverges="The reference delegates to a peer of its own.",
    ),
    Promise(
        id="docs:operator:page",
        source="own choice",
        sentence="The operator's page for users names every setting with its default and bounds, and every reason.",
    ),
    Promise(
        id="hermes:operator:embedded",
        source="issue 3",
        sentence="With nothing else installed, an objective is carried out, its approval answered or denied, and its "
        "run stopped.",
    ),
)
