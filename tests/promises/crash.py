"""What holds when a server is killed, proven from outside: by processes that die and a provider that counts."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="crash:killed:definite",
        source="design D4, issue 4 (crash safety)",
        sentence="Whatever a server was doing when it was killed, five seconds after the next start each action is "
        "terminal, waits for its approval or waits in the queue, and none that was claimed is unknown.",
    ),
    Promise(
        id="crash:killed:sent-once",
        source="design D4, issue 4 (crash safety)",
        sentence="Over a kill at any point, the restart and a client that repeats itself, the provider sees at most "
        "one request that changes something.",
    ),
    Promise(
        id="crash:killed:uncertain-exactly",
        source="design D4, issue 4 (crash safety)",
        sentence="An outcome is called uncertain exactly when the server died between the recorded intent and the "
        "settlement; before that it is certain and may be repeated, after it the result stands.",
        diverges="The reference may run it a second time or never say how it ended.",
    ),
    Promise(
        id="runtime:rules:any-order",
        source="design D2, D3, D4, D9, D13; issue 4 (proven by)",
        sentence="Whatever the order of submissions, repeats, changed inputs, decisions, cancels, expiries, crashes "
        "and restarts, each answer and each status is the one that the rules give, and so is the number of sends.",
    ),
    Promise(
        id="soak:accounts",
        source="issue 4 (proven by)",
        sentence="The soak passes only when every accepted action is settled or definitely uncertain, its client was "
        "told what is kept, and the provider's own log agrees one to one.",
    ),
)
