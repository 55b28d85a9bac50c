"""What outlives the death of an endpoint, a full disk and a long read; what a log on that disk may cost."""

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
    Promise(
        id="sessions:full-disk:refuses",
        source="design §6; Sessions §3",
        sentence="On a full disk a change is 503 session_db_unavailable, or 500 reply_not_stored once its question is "
        "stored; nothing of what was refused is kept, and everything can still be read.",
    ),
    Promise(
        id="sessions:full-disk:resumes",
        source="design §6",
        sentence="Once there is room again the same process goes on; the file was never damaged.",
    ),
    Promise(
        id="sessions:folder:one-endpoint",
        source="design §6",
        sentence="A second endpoint on a served folder stops with 1 and names the process of the first, which goes on.",
    ),
    Promise(
        id="sessions:long-read:disturbs-nobody",
        source="field report F040",
        sentence="While a transcript of 50,000 messages is read, health and the list of sessions answer in a small "
        "part of its time.",
    ),
    Promise(
        id="log:unwritable:stops-nothing",
        source="design §6",
        sentence="A log that can't be written, on a full disk or into a closed pipe, costs its events and no answer.",
    ),
    Promise(
        id="sessions:generations:own-rows",
        source="field reports F028, F029",
        sentence="A session that every turn continues in another process grows by the rows of that turn alone, and its "
        "file with them.",
    ),
    Promise(
        id="sessions:generations:forks",
        source="field reports F002, F094, F098",
        sentence="After a fork the source is read as itself; after its deletion the forks are listed, read, continued "
        "and deleted by whatever process comes next.",
    ),
    Promise(
        id="sessions:store:light",
        source="own choice",
        sentence="A program that opens a session store loads neither web server nor HTTP client for it.",
    ),
    Promise(
        id="database:connection:rows",
        source="design §6",
        sentence="An insert tells the id that its row got, a change how many rows it met, a look its columns in their "
        "order; on either engine.",
    ),
)
