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
)
