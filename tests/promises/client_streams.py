"""What the client library and `aipctl` promise about streams, asynchronous actions and cancelling."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="client:follow:as-it-happens",
        source="command-line client §17.5; issue 3",
        sentence="A follower gets each frame before the next one is made.",
    ),
    Promise(
        id="client:follow:goes-on",
        source="field report F047; HTTP surface §7.2",
        sentence="After a broken connection or a stop of the server a follower goes on behind its last position, and "
        "hands out every frame once, wherever the connection broke.",
        diverges="The reference's client reads a stream once, to its end.",
    ),
    Promise(
        id="client:follow:bounded-tries",
        source="field report F050; issue 3",
        sentence="Connections in a row that bring nothing new are bounded; giving up is a failure that names the "
        "last position. An end of the connection is no end of the action.",
    ),
    Promise(
        id="client:follow:final-refusals",
        source="field report F052; HTTP surface §7.2",
        sentence="A refusal, an answer that is no event stream, and a frame that is no JSON or too long end the "
        "following at once, after one request.",
    ),
    Promise(
        id="client:follow:idle",
        source="field report F053",
        sentence="A stream that is silent longer than the idle limit is left; a comment is a sign of life.",
    ),
    Promise(
        id="client:cancel:route",
        source="HTTP surface §6; design D8",
        sentence="A cancel is sent once with its reason and answers the action's result; a lost answer is uncertain.",
    ),
    Promise(
        id="aipctl:follow:json-lines",
        source="command-line client §17.5; field report F110",
        sentence="With --follow stdout is one JSON document per line, each written as its frame comes; a call ends "
        "with its whole reply.",
        diverges="The reference collects the stream and prints one document with its text.",
    ),
    Promise(
        id="aipctl:follow:exit-codes",
        source="design D1; issue 3",
        sentence="A followed call ends with the exit code of its result, as if it had not been followed.",
    ),
    Promise(
        id="aipctl:follow:leaves-nothing-behind",
        source="field report F046; design D17",
        sentence="Killing or interrupting a follower stops no action; an interrupt names the commands to follow on "
        "from the last position and to cancel.",
    ),
    Promise(
        id="aipctl:follow:live-text",
        source="issue 3; style anchors 2.10",
        sentence="Text is shown live on stderr only where that is a terminal and stdout is none, every line marked and "
        "made safe.",
    ),
    Promise(
        id="aipctl:async:what-next",
        source="HTTP surface §4; issue 3",
        sentence="An accepted asynchronous action and a waiting or running one say how to query, follow and cancel it.",
    ),
    Promise(
        id="aipctl:cancel:result",
        source="HTTP surface §6; design D8",
        sentence="`action cancel` prints the action's result, says what was stopped or that it came too late, and "
        "exits 4 when the effect may have happened.",
    ),
    Promise(
        id="aipctl:follow:no-text",
        source="field report F083",
        sentence="A turn that ended without text is said to have none.",
    ),
)
