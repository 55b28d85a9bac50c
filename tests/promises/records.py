"""What the runtime and the server promise about records, their readers, and how long text is kept."""

from tests.promises.promise import Promise

_ISSUE = "issue 4, records"

PROMISES = (
    Promise(
        id="records:events:deterministic",
        source="runtime behaviour §15, " + _ISSUE,
        sentence="An event's id follows from what it tells, so that telling it again adds nothing.",
    ),
    Promise(
        id="records:log:whose",
        source="HTTP surface §3.7, design D24",
        sentence="The log gives a caller the events of its own actions, of all of its tenant with `events:read:any`, "
        "and of another tenant never.",
        diverges="The reference refuses the log to whoever lacks `events:read:any`.",
    ),
    Promise(
        id="records:log:once-and-in-order",
        source="HTTP surface §5.1, §7, field report theme durability",
        sentence="Polling and following give every event once and in order, while actions run at once and over a "
        "restart; no cursor is ahead of an event that comes later.",
    ),
    Promise(
        id="records:log:pruned",
        source="HTTP surface §5.1",
        sentence="A cursor before what was pruned, or behind the end, is `stream.cursor_expired`, never a silent gap; "
        "places are not used twice.",
    ),
    Promise(
        id="records:list:bounded",
        source="runtime behaviour §19",
        sentence="A page of actions with long results ends early, and going on with its cursor gives the rest.",
    ),
    Promise(
        id="records:list:filters",
        source="HTTP surface §5.2, design §5",
        sentence="Actions are listed by state, outcome, capability, endpoint, session, principal, approval and time, "
        "in pages that give each one once.",
    ),
    Promise(
        id="records:list:whose",
        source="HTTP surface §3.7",
        sentence="A list gives a caller its own actions; with a scope over others those of its tenant; another "
        "tenant's never, and an id of another tenant answers as one that does not exist.",
    ),
    Promise(
        id="records:receipts:chain",
        source="runtime behaviour §15, wire model §8.2",
        sentence="An approval's request, decision and result are a chain of receipts, written with what they witness; "
        "a change, a gap or a swap in it shows.",
    ),
    Promise(
        id="records:receipts:whose",
        source="HTTP surface §3.7",
        sentence="A chain is read by who may see its approval; an unknown one and another tenant's are "
        "`receipt.not_found`.",
    ),
    Promise(
        id="records:audit:query",
        source="HTTP surface §3.7, §5.2, runtime behaviour §15",
        sentence="The audit log is queried by actor, action, session and time; data needs a scope of its own, export "
        "and receipts another.",
    ),
    Promise(
        id="records:text:not-kept",
        source="design D19, D23",
        sentence="Of a settled action's input the store keeps hashes only; events, audit and receipts never hold text.",
    ),
    Promise(
        id="records:text:where",
        source="design D19, D23; issue 4, Proven by",
        sentence="A marker in any field of a caller or a provider is found in the few columns that the design names, "
        "and in no other column, log line, event, audit record, metric, webhook or file; a credential in none.",
    ),
    Promise(
        id="records:text:expires",
        source="design D23",
        sentence="Outputs and chunks that hold a transcript go after their hours, asked for or not; a query says "
        "`action.gone`, status and replay say that and the hash, and nothing is sent.",
    ),
    Promise(
        id="records:text:delete-erases",
        source="design D23",
        sentence="A completed delete of a session erases every stored output and chunk about it in its own settlement, "
        "and nothing else; one that does not complete erases nothing.",
    ),
    Promise(
        id="records:text:traces",
        source="design D23",
        sentence="What an answer holds text about is every session, response and run that path, call and answer name.",
    ),
    Promise(
        id="records:prune:spares",
        source="design §6, D3, " + _ISSUE,
        sentence="Pruning counts, or removes, what settled longer ago, and spares unfinished actions, fences that "
        "answer, waiting approvals, receipts and audit; a mutation's Action ID never runs twice for it.",
    ),
    Promise(
        id="records:prune:verdicts",
        source="design D23, §6, " + _ISSUE,
        sentence="A verdict about an action is counted and pruned with the action's events; whoever looks again "
        "afterwards is told a new one, as an event too.",
    ),
    Promise(
        id="records:prune:connector-state",
        source="design D23, §6, " + _ISSUE,
        sentence="What a connector kept about a call is pruned when it is old enough and nothing unfinished of its "
        "tenant can have written it.",
    ),
    Promise(
        id="records:wait",
        source="HTTP surface §5.2, " + _ISSUE,
        sentence="`wait_ms` lets status, result and events wait for an end or an event, no longer than said, without "
        "turning in a loop, and a stop of the server ends it.",
        diverges="The reference parses `wait_ms` and never waits.",
    ),
    Promise(
        id="records:empty-kinds",
        source="HTTP surface §17",
        sentence="AIP sessions, transactions, resources and callback deliveries answer empty lists and the code of "
        "their kind, under their scopes.",
    ),
    Promise(
        id="records:plans",
        source="issue 4, speed",
        sentence="Status, result, events, lists, receipts and audit are found by an index, however many actions there "
        "are.",
    ),
    Promise(
        id="records:client",
        source=_ISSUE,
        sentence="The client reads every record, follows the log and verifies a chain by itself, naming what is wrong.",
    ),
    Promise(
        id="records:routes:documented",
        source=_ISSUE,
        sentence="The page of routes names every route that is served.",
    ),
    Promise(
        id="records:settings",
        source="design D23",
        sentence="`[retention] transcripts_hours` says how long transcripts are kept; a day where it is absent.",
    ),
)
