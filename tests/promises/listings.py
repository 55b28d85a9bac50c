"""What is promised of the listings that evidence is looked for in."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:listing:to-its-end",
        source="API server §3.2; design §5, D25",
        sentence="A listing is read on as long as the endpoint says that rows follow, whatever the length of its "
        "pages, and by that length only where it says nothing.",
    ),
)
