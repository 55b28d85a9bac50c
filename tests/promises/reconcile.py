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
        id="reconcile:matrix",
        source="issue 5 (proven by); design §5",
        sentence="For each operation that changes something and each fault the verdict is right at every moment: at "
        "once, after the quiet time, and when the effect lands after a verdict; a cell that can't occur says why.",
    ),
    Promise(
        id="reconcile:interrupted",
        source="issue 5; design §5",
        sentence="A server that dies between a verdict and its event keeps neither, and the next look gives both; what "
        "is pruned or erased during a look leaves verdict and event one story.",
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
    Promise(
        id="reconcile:verdict:other-operations",
        source="design §5 (runs, jobs, responses)",
        sentence="A response, a run, a job or a turn without a session is found by its id or by what was sent; where"
        " nothing is found the outcome stays open, unless a session of the caller's own choice is missing.",
    ),
    Promise(
        id="reconcile:rules:every-operation",
        source="issue 5 (reconciliation)",
        sentence="Every operation that may change something names the rule by which it is reconciled.",
    ),
    Promise(
        id="reconcile:rules:rows",
        source="design §5 (table)",
        sentence="Creates, patches, deletes and forks are judged by their rows against those read before sending, as"
        " the table says; somebody else's row or change is told as such.",
    ),
    Promise(
        id="reconcile:rules:turns",
        source="design §5 (table), D15, D20",
        sentence="A turn is judged by its user's row and a finished reply, by hash and place, also after a compression;"
        " messages are read only where the row moved, and no text of them is kept.",
    ),
    Promise(
        id="reconcile:unread:says-why",
        source="design §5; issue 5",
        sentence="What can't be read leaves the outcome open and is told with its cause; another tenant's endpoint is"
        " not read at all.",
    ),
    Promise(
        id="reconcile:next-step:one-table",
        source="issue 5 (safe next action)",
        sentence="Every verdict comes with one sentence of one table that says what is safe to do next.",
    ),
    Promise(
        id="reconcile:verdict:event",
        source="design §5; issue 5 (every verdict an event and a metric)",
        sentence="Each verdict is an event of its action, is counted, and the latest can be read, after a restart too.",
    ),
    Promise(
        id="reconcile:certain:nothing-read",
        source="issue 5 (reconciliation)",
        sentence="An action whose outcome is certain, or that has not ended, is answered from the store; the endpoint"
        " is not read.",
    ),
    Promise(
        id="reconcile:access",
        source="design §5, D18; AIP HTTP surface §3.7",
        sentence="Who submitted an action and holds action:write reconciles it, others with action:write:any; of"
        " another tenant's action nobody learns that it exists.",
    ),
    Promise(
        id="reconcile:routes",
        source="design §5; AIP HTTP surface §15 (routes of our own)",
        sentence="`POST …/reconcile` looks and `GET …/reconciliation` answers the last look, over HTTP as in the"
        " runtime; a body that says anything is refused.",
    ),
    Promise(
        id="reconcile:command",
        source="issue 5 (reconciliation); style: command line",
        sentence="`aipctl action reconcile` prints verdicts on stdout alone, says the next step on stderr, and exits 4"
        " where an outcome is still unknown.",
    ),
    Promise(
        id="reconcile:page",
        source="issue 5 (docs)",
        sentence="Every command of the page about uncertain outcomes runs as it stands there, and it names every"
        " verdict and every setting.",
    ),
    Promise(
        id="reconcile:turns:said-again",
        source="issue 5 (concurrent change between intent and reconciliation)",
        sentence="The row of another turn that said the same in the same session is never taken for the lost one.",
    ),
    Promise(
        id="reconcile:rules:targets",
        source="design §5 (runs, jobs)",
        sentence="A run that was to stop is judged by its status; a run that was to hear an answer by whether it still"
        " waits.",
    ),
    Promise(
        id="reconcile:rivals",
        source="design §5; issue 5 (concurrent change between intent and reconciliation)",
        sentence="What another action made, forked, started or changed is never taken for the work of a lost one that"
        " wanted the same, nor for a sign that it did nothing; one that is proven to have done nothing is no rival.",
    ),
    Promise(
        id="reconcile:rules:clocks",
        source="design §5 (after an in-place compaction: by time, minus the slack)",
        sentence="Where a turn can only be looked for by time, or not all of a transcript is shown, that it is missing"
        " proves nothing.",
    ),
    Promise(
        id="reconcile:verdict:runs",
        source="design §5 (runs); issue 5 (reconciliation)",
        sentence="A stop of a run, and an answer to what a run asked, whose own answers were lost, are told by the run"
        " as far as it tells them; the rest stays open.",
    ),
)
