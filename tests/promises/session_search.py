"""What a search in transcripts promises, and what a damaged index may cost."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_SESSIONS = "Sessions §"

PROMISES = (
    Promise(
        id="search:query:as-typed",
        source=_SESSIONS + "8, §16.11",
        sentence="Queries as people type them find their row: with any mark inside a word, phrases, word beginnings, "
        "OR, NOT, scripts without spaces from one character on.",
    ),
    Promise(
        id="search:query:never-raises",
        source=_SESSIONS + "8",
        sentence="Any text is a query and never fails; blank, operators alone and what follows 2,048 characters ask "
        "for nothing.",
    ),
    Promise(
        id="search:query:own-words",
        source=_SESSIONS + "8, §16.11",
        sentence="Whatever is stored is found by any of its own words.",
    ),
    Promise(
        id="search:query:parts-of-words",
        source=_SESSIONS + "8, §14",
        sentence="What no word matches is looked for inside words, a phrase to the letter.",
    ),
    Promise(
        id="search:rows:visible",
        source=_SESSIONS + "8, §16.9, §16.11",
        sentence="Live and compacted rows are found, rewound ones on request, deleted ones never, changed ones by "
        "their new text.",
    ),
    Promise(
        id="search:rows:fresh",
        source="issue 6",
        sentence="A search finds every row that was stored before it began, whoever stored it.",
    ),
    Promise(
        id="search:rows:contents",
        source=_SESSIONS + "2.2, §8",
        sentence="Texts inside of lists and tool calls are found, whatever else a content is stops no write.",
    ),
    Promise(
        id="search:rows:filters",
        source=_SESSIONS + "8",
        sentence="Sources, excluded sources and roles filter; an empty list of sources finds nothing.",
    ),
    Promise(
        id="search:rows:order",
        source=_SESSIONS + "8",
        sentence="The best fit comes first, or the newest, or the oldest; pages neither repeat nor leave out a row.",
    ),
    Promise(
        id="search:hits:shape",
        source=_SESSIONS + "8",
        sentence="A hit has ten members or those asked for, its matches marked in at most 40 words, its neighbours cut "
        "at 200 characters.",
    ),
    Promise(
        id="search:hits:one-query",
        source=_SESSIONS + "17; issue 6",
        sentence="A search takes the same number of statements for one hit as for many.",
    ),
    Promise(
        id="search:index:older-stores",
        source="issue 6",
        sentence="Rows that a store held before it could be searched are found.",
    ),
    Promise(
        id="search:index:damaged",
        source=_SESSIONS + "3, §16.17",
        sentence="A damaged index stops no write and no search, is reported, and is sound again once the store is "
        "opened anew.",
    ),
    Promise(
        id="search:index:absent",
        source=_SESSIONS + "8",
        sentence="An engine without full-text search searches the texts themselves.",
    ),
    Promise(
        id="search:index:erased",
        source="design §6; issue 6",
        sentence="Optimizing takes the words of deleted messages out of the file.",
    ),
    Promise(
        id="search:index:rebuild",
        source="issue 6",
        sentence="A rebuild tells how far it is, and one that was killed is completed by what comes after it.",
    ),
    Promise(
        id="session_search:modes",
        source=_SESSIONS + "9",
        sentence="What is given decides: a query discovers, a session is read, a message in it is scrolled to, nothing "
        "browses; each answers with its documented members.",
    ),
    Promise(
        id="session_search:arguments",
        source=_SESSIONS + "9",
        sentence="Numbers are brought into their bounds, and what a model makes of an argument is never an exception.",
    ),
    Promise(
        id="session_search:one-per-conversation",
        source=_SESSIONS + "9",
        sentence="A conversation is one result: the one with the title first, scheduled runs last, other agents' work "
        "never, the current one only with what has left its context.",
    ),
    Promise(
        id="session_search:failures",
        source=_SESSIONS + "9; issue 6",
        sentence="What can't be had is a JSON text with error and success false; a store of another program is named "
        "together with session_db=.",
    ),
)
