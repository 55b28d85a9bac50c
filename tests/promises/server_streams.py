"""What the server promises about streams and cancellation."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="server:follow:as-it-happens",
        source="HTTP surface §7.2",
        sentence="A follower gets each chunk while the action runs, then the end, and the stream closes.",
    ),
    Promise(
        id="server:follow:resume",
        source="HTTP surface §7.2, field report F047",
        sentence="A follower that lost its connection goes on behind its last cursor, also after a restart.",
    ),
    Promise(
        id="server:follow:reader-leaves",
        source="design D17, field report F046",
        sentence="A follower that leaves, or a submitter that does, stops neither the action nor other followers.",
    ),
    Promise(
        id="server:follow:heartbeat",
        source="HTTP surface §7.2",
        sentence="An idle stream carries a comment at least every fifteen seconds.",
    ),
    Promise(
        id="server:follow:rare-kinds",
        source="HTTP surface §7",
        sentence="A follower of rare kinds passes the events between them without resting.",
    ),
    Promise(
        id="server:follow:small-portions",
        source="design D17, issue 3",
        sentence="A follower is handed a quarter of a megabyte at a time, so that many silent ones cost little memory.",
    ),
    Promise(
        id="server:events:polling",
        source="HTTP surface §7.1",
        sentence="Polling with the returned cursor gives everything once and ends with terminal.",
    ),
    Promise(
        id="server:events:refusals",
        source="HTTP surface §5",
        sentence="An unknown action, a bad cursor and a missing scope are error envelopes, for followers too.",
    ),
    Promise(
        id="server:cancel:route",
        source="HTTP surface §6",
        sentence="Cancelling by route and by message answers the action's result; a bad body changes nothing.",
    ),
)
