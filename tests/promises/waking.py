"""What is promised to who waits for an action."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="runtime:waking:at-once",
        source="HTTP surface §5.2 (wait_ms); design D9",
        sentence="A denial, a vote, a cancel, an expiry that a reader finds and the parking itself wake those of the "
        "process who wait for the action, in the same call.",
    ),
)
