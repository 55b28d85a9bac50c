"""What is promised to who waits for an action."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="runtime:waking:at-once",
        source="HTTP surface §5.2 (wait_ms); design D9",
        sentence="A denial, a vote, a cancel, an expiry that a reader finds and the parking itself wake those of the "
        "process who wait for the action, in the same call.",
    ),
    Promise(
        id="runtime:background:ends-cleanly",
        source="design §3, D4; style anchors on the outermost loop",
        sentence="Closing ends without an error whenever the last work ends, and whoever waits for work hears of its "
        "end, also where it was cancelled before it began.",
    ),
)
