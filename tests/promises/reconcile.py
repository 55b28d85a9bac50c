"""What reconciliation promises: after a lost answer somebody is told the truth, and nothing is sent again for it."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="reconcile:verdict:as-the-rows",
        source="design §5; issue 5 (reconciliation)",
        sentence="Wherever the answer to a create, patch, fork, turn or delete was lost, the verdict is what the"
        " endpoint's own rows say.",
        diverges="The reference has no reconciliation of its own operations.",
    ),
    Promise(
        id="reconcile:reads-only",
        source="design §5, §8; issue 5 (proven by)",
        sentence="Reconciling any operation to any verdict sends no request that may change anything.",
    ),
    Promise(
        id="reconcile:result-stands",
        source="design §5",
        sentence="A verdict never changes the result of the action.",
    ),
    Promise(
        id="reconcile:quiet:late-effects",
        source="design §5 (quiet times); issue 5 (proven by)",
        sentence="What is missing proves nothing before the quiet time, and what comes after a verdict is found by the"
        " next one.",
    ),
    Promise(
        id="reconcile:lock:released",
        source="design D13",
        sentence="A session that a lost turn keeps closed opens as soon as the turn is seen to be over.",
    ),
    Promise(
        id="reconcile:delete:erases",
        source="design D23",
        sentence="A delete that is proven by reconciliation erases what was stored of its session.",
    ),
    Promise(
        id="reconcile:fork:halves",
        source="design §5, D16; Hermes API §3.8",
        sentence="A fork that stopped half-way is told as partially applied, never as done or not done.",
    ),
    Promise(
        id="reconcile:verdict:stands",
        source="issue 5 (verdicts right at every moment)",
        sentence="What one look proved is not taken back by a later one, which is told beside it.",
    ),
    Promise(
        id="reconcile:delete:another-row",
        source="design §5",
        sentence="A row that was started at another time is somebody else's: the delete stays indeterminate, and this"
        " is said.",
    ),
)
