"""What is promised where two endpoints serve one store, and where a text is looked for as it is typed."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="sessions:endpoints:one-turn",
        source="field report F056",
        sentence="Turns of one session that are sent at once to two endpoint processes on one store run one after the "
        "other, each on what the ones before left; one that is killed keeps the other from nothing.",
    ),
    Promise(
        id="search:query:literal",
        source="field report F044",
        sentence="A text with quotes, a slash, `@`, `%`, plus signs, an asterisk or without spaces is found by itself "
        "and by its marked word; marks alone find nothing, and none of it fails.",
    ),
)
