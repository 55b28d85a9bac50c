"""What is promised of commands about kinds of records that a server of ours keeps none of."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="aipctl:other-records",
        source="command-line client §14.3; issue 4, Records",
        sentence="`session list|get|close|resume`, `transaction get` and `resource list|read` make one request each; a "
        "server of ours answers empty lists and the code of the kind.",
    ),
)
