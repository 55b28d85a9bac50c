"""What outlives the death of an endpoint, a full disk and a long read."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

PROMISES = (
    Promise(
        id="sessions:killed:nothing-lost",
        source="design §7, §8; Sessions §16.14",
        sentence="A SIGKILL in a turn loses no durable row: not the question once the model is asked, not a tool's "
        "result once it is asked again, nothing once the turn is answered.",
    ),
    Promise(
        id="sessions:killed:nothing-twice",
        source="field reports F028, F029",
        sentence="After any kill every row is there once, in the order in which it was said; the counters are exact.",
    ),
    Promise(
        id="sessions:killed:goes-on",
        source="design §7, §8",
        sentence="The next endpoint goes on with the session that a killed one left.",
    ),
    Promise(
        id="sessions:killed:first-start",
        source="field report F038",
        sentence="A first start killed at any point leaves a folder that the next one serves.",
    ),
)
