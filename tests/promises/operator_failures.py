"""What is kept of a run that failed."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:operator:failed-masked",
        source="design D10, D19; field report F079",
        sentence="What an endpoint says of a run that failed is kept by field class: without credentials, prompts, "
        "reasoning and tool payloads, with counts and a cleaned error text.",
    ),
)
