"""What is kept of a run that failed."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:operator:failed-masked",
        source="design D10, D19; field report F079",
        sentence="What an endpoint says of a run that failed is kept by field class: without credentials, prompts, "
        "reasoning and tool payloads, with counts and a cleaned error text.",
    ),
    Promise(
        id="action:cancel:ended-question",
        source="design D8; runtime behaviour §3, §10",
        sentence="The cancel of an action that ended with a question of its run answers that result and stops nothing: "
        "the question is answered with `deny`, or the run stopped with `run_stop`.",
        diverges="The reference's table lets `pending_approval` become `cancelled`; here no stored result changes.",
    ),
)
