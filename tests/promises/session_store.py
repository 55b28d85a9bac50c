"""What the session store promises to those who use it as a library."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_SESSIONS = "Sessions §"

PROMISES = (
    Promise(
        id="session_db:open:lazy",
        source=_SESSIONS + "3, §16.1",
        sentence="A store that was made and never used leaves no file; without a place it is state.db of HERMES_HOME.",
    ),
    Promise(
        id="session_db:open:refused",
        source=_SESSIONS + "3; design §6",
        sentence="A file of another program, and one that a newer program made, are refused and not touched.",
    ),
    Promise(
        id="session_db:open:migrated",
        source=_SESSIONS + "3; design §6",
        sentence="A file of an earlier release is brought up by its first writer, and keeps all that is in it.",
    ),
    Promise(
        id="session_db:names",
        source=_SESSIONS + "5",
        sentence="The methods have the names and parameters of hermes-agent's, in their order.",
    ),
    Promise(
        id="session_db:create:inherit",
        source=_SESSIONS + "5.1, §16.2",
        sentence="A second create fills null columns only; a child inherits its place, after a compression its owner.",
    ),
    Promise(
        id="session_db:messages:round-trip",
        source=_SESSIONS + "2.2, §16.3",
        sentence="Append, batch and replace keep every column: structure, NUL, empty text, null; surrogates become "
        "U+FFFD, bad times become now, bad display metadata goes.",
    ),
    Promise(
        id="session_db:messages:readable",
        source=_SESSIONS + "2.2",
        sentence="No value makes a transcript unreadable: what JSON can't hold, and what is nested deeper than 100 "
        "levels, becomes a text where it stands.",
    ),
    Promise(
        id="session_db:messages:counters",
        source=_SESSIONS + "5.2, §16.3; field report F097",
        sentence="Counters are exact under 16 writers, a refused batch counts nothing, and no write brings a deleted "
        "session back.",
    ),
    Promise(
        id="session_db:messages:cancelled",
        source=_SESSIONS + "4",
        sentence="A write whose caller was cancelled is stored as a whole or not at all, and the store goes on.",
    ),
    Promise(
        id="session_db:messages:order",
        source=_SESSIONS + "2.3, §16.4",
        sentence="Insertion is the order, in every reader, also under a clock that steps back.",
    ),
    Promise(
        id="session_db:messages:replace",
        source=_SESSIONS + "5.2",
        sentence="Replacing is one transaction: all rows, the live ones, or the live ones put away; clearing starts "
        "the counters again.",
    ),
    Promise(
        id="session_db:messages:looks",
        source=_SESSIONS + "5.3",
        sentence="Single rows, the last of a role, windows and bookends are found without loading the transcript.",
    ),
    Promise(
        id="session_db:titles:rules",
        source=_SESSIONS + "5.4, §16.5; field reports F088, F089",
        sentence="A title is cleaned, then measured by code points: 100 pass, 101 don't; case tells titles apart; a "
        "clash names the holder and changes nothing.",
    ),
    Promise(
        id="session_db:titles:rank",
        source=_SESSIONS + "5.4",
        sentence="An automatic title replaces one of strictly lower rank only; a person's is never replaced.",
    ),
    Promise(
        id="session_db:ends:first-reason",
        source=_SESSIONS + "5.5, §16.6",
        sentence="The first reason wins until the row is reopened; an ended row takes messages, one that a compression "
        "ended refuses them and names its tip.",
    ),
    Promise(
        id="session_db:ends:reopen",
        source=_SESSIONS + "5.5",
        sentence="Children whose kind only the end reason told keep it when the row is reopened.",
    ),
    Promise(
        id="session_db:flags:conversation",
        source=_SESSIONS + "5.5",
        sentence="Archived, pinned, hidden and read belong to all rows that compressions cut a conversation into.",
    ),
    Promise(
        id="session_db:lineage:chain",
        source=_SESSIONS + "6, §16.7; field report F094",
        sentence="Tip, lineage, root and both histories are right from every member of a chain, also after a delete in "
        "its middle, and for a chain that runs in a circle.",
    ),
    Promise(
        id="session_db:lineage:fork",
        source=_SESSIONS + "6, §14, §16.8; field report F095",
        sentence="A fork is listed and shows its copy once; its source resolves to itself; both go on apart.",
    ),
    Promise(
        id="session_db:lineage:guards",
        source=_SESSIONS + "6, §5.10",
        sentence="A resume or an export over its limit is refused with both numbers.",
    ),
    Promise(
        id="session_db:conversation:form",
        source=_SESSIONS + "7",
        sentence="The conversation form has what a row has and nothing else; recalled memory, background reviews and "
        "bare tool names are cleaned from it, and rows stay as they are.",
    ),
    Promise(
        id="session_db:conversation:repair",
        source=_SESSIONS + "7",
        sentence="Repair joins neighbours, drops stray tool results and touches nothing else, in three passes.",
    ),
    Promise(
        id="session_db:rewind",
        source=_SESSIONS + "5.8, §16.12",
        sentence="A rewind hides a user's message and all after it, everywhere; restoring brings back exactly these.",
    ),
    Promise(
        id="session_db:listing:order",
        source=_SESSIONS + "5.6",
        sentence="A page is ordered by start, or by the newest activity anywhere in a conversation, and holds one "
        "entry for each.",
    ),
    Promise(
        id="session_db:listing:visible",
        source=_SESSIONS + "5.6; field report F098",
        sentence="Roots, branches and resets are listed; subagents' rows and continuations aren't; hidden and archived "
        "ones where asked for.",
    ),
    Promise(
        id="session_db:listing:filters",
        source=_SESSIONS + "5.6",
        sentence="Each filter of a listing means what it says; wildcards are letters.",
    ),
    Promise(
        id="session_db:listing:counts",
        source=_SESSIONS + "5.6",
        sentence="Counts agree with listings.",
    ),
    Promise(
        id="session_db:listing:plans",
        source=_SESSIONS + "2.5, §17",
        sentence="Whatever is asked of one session, or of a page, is answered along an index.",
    ),
    Promise(
        id="session_db:settings",
        source=_SESSIONS + "5.11",
        sentence="Single values of a row are written without touching the rest; activity never steps back.",
    ),
    Promise(
        id="session_db:settings:any-text",
        source="design §7",
        sentence="A value of a row, of the store, of a response or of a grant may be any text: no lone surrogate is an "
        "error, each becomes U+FFFD.",
    ),
    Promise(
        id="session_db:prompts",
        source=_SESSIONS + "2.1",
        sentence="A system prompt is stored once, and is gone with the last row that used it.",
    ),
    Promise(
        id="session_db:compression-notes",
        source=_SESSIONS + "2.1, 5.5, 10",
        sentence="A row remembers compressions that failed; one that was broken off is told apart and can be undone.",
    ),
    Promise(
        id="session_db:delete:erased",
        source=_SESSIONS + "5.7; design D23",
        sentence="After a store that removed sessions has closed, no word of them is left in its file or its index.",
    ),
    Promise(
        id="session_db:removals",
        source="field reports F094, F100",
        sentence="Every removal leaves an entry: which session, when, by what, by whom; one statement alone removes.",
    ),
    Promise(
        id="session_db:failures",
        source=_SESSIONS + "4",
        sentence="What the store refuses has a type, and a classifier says which kind a failure is.",
    ),
)
