"""What is promised to who works through the actions that nobody knows the outcome of."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="reconcile:unresolved",
        source="design §5; issue 4",
        sentence="`outcome=unresolved` lists, `--all-uncertain` looks at and the doctor counts what ended uncertain "
        "and has no verdict that decides it; `outcome=uncertain` lists all that ended so.",
    ),
)
