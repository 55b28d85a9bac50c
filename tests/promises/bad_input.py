"""What is promised to those who send nonsense, and to those beside them; and what an error says wherever it occurs."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="server:bad-input:enveloped",
        source="issue 4, bad input; design D21",
        sentence="Broken, oversized, deep, repeated or wrongly typed input is answered by an error envelope on every "
        "route, bytes that are no HTTP request too, and never by a fault of the server.",
    ),
    Promise(
        id="server:bad-input:no-growth",
        source="issue 4, bad input",
        sentence="The server keeps nothing of what it refused.",
    ),
    Promise(
        id="server:bad-input:unknown-callers",
        source="issue 4, bad input",
        sentence="A body of more than 64 KiB is decoded for known callers only; others are refused as such.",
        diverges="The reference decodes what anybody sends before it asks who that is.",
    ),
    Promise(
        id="server:storage:certain",
        source="issue 4, crash safety; design D4",
        sentence="Where the store fails before an action was claimed, or at a safe read, the answer says that nothing "
        "was changed; only where something may have been sent it is uncertain.",
    ),
    Promise(
        id="errors:table",
        source="issue 4; runtime behaviour §20",
        sentence="An error has the code, category, retryable flag, carrier and HTTP status of the table of errors.",
    ),
)
