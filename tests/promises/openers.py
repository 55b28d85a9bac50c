"""What other openers of a store can do to its server: nothing."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="store:openers:harmless",
        source="field report F032",
        sentence="Fifty processes that read, copy or write a served store and leave keep its server from no write, and "
        "its log and index stay the same files.",
    ),
)
