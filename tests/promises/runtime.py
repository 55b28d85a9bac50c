"""What the embedded runtime promises."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="runtime:checks:order",
        source="runtime behaviour §2",
        sentence="An action passes its checks in the published order, and the first violation alone is answered.",
    ),
    Promise(
        id="runtime:checks:store-nothing",
        source="runtime behaviour §2, design §8",
        sentence="An action refused by a check leaves no record, consumes no key, and nothing is read or sent.",
    ),
    Promise(
        id="runtime:checks:nothing-ignored",
        source="design D8",
        sentence="Members that the runtime does not act on are refused: callback, federation, foreign approvals, "
        "transaction modes other than execute, modes that it does not run.",
        diverges="The reference accepts callbacks and federation contexts.",
    ),
    Promise(
        id="runtime:checks:near-misses",
        source="issue 2, field report F008",
        sentence="An unknown capability is refused with the qualified ids that exist for the tenant.",
    ),
    Promise(
        id="runtime:checks:invocation",
        source="design D24",
        sentence="A caller invokes only capabilities that its patterns cover.",
    ),
    Promise(
        id="runtime:result:failure-is-stored",
        source="design D1",
        sentence="A failed connector call is a failed result, stored under Action ID and key.",
        diverges="The reference answers an error message and stores nothing.",
    ),
    Promise(
        id="runtime:result:output-checked",
        source="runtime behaviour §5, design D22",
        sentence="A provider answer outside the output schema is a failed result, uncertain for mutations.",
    ),
    Promise(
        id="runtime:result:storable",
        source="design D1, D2; the second look at the first slice",
        sentence="An outcome that can't be kept, sent or read again ends its action as a failure all the same, "
        "uncertain for a mutation that answered, else as certain as it was.",
    ),
    Promise(
        id="runtime:result:deadline",
        source="design §3, D22",
        sentence="The timeout is the smaller of the caller's and the service level's, starts with the session lock, "
        "and a handler that overruns it is ended: certain before the intent, uncertain after it.",
    ),
    Promise(
        id="runtime:result:handler-fault",
        source="design D1, D4",
        sentence="A fault of a handler ends its action definitely: certain before the intent, uncertain after it.",
    ),
    Promise(
        id="runtime:result:not-kept",
        source="design D4, errors",
        sentence="An end that the store does not take is told without its details: which action it was, whether it may "
        "have taken effect, and what is safe to do next.",
    ),
    Promise(
        id="runtime:result:confirm-adds-only",
        source="design §3",
        sentence="Reading back may add evidence and never changes the outcome.",
    ),
    Promise(
        id="runtime:fence:required-key",
        source="design D5; field report F026",
        sentence="A blank key is a missing one, and keys are 1 to 255 visible ASCII characters.",
        diverges="The reference accepts blank keys as present and ignores them.",
    ),
    Promise(
        id="runtime:fence:replay-sends-nothing",
        source="design D2, D7",
        sentence="A settled key answers its original result, marked, and nothing is read, sent or stored.",
    ),
    Promise(
        id="runtime:fence:replay-names-changed-input",
        source="design D7, field report F011",
        sentence="A replay says whether the input differs from the original one.",
    ),
    Promise(
        id="runtime:fence:errors-are-kept",
        source="design D2, field report F022",
        sentence="A key is settled by success, by a final failure and by an uncertain one, and is free again after a "
        "certain failure that is retryable or caused outside the request.",
        diverges="The reference frees the key after every connector failure.",
    ),
    Promise(
        id="runtime:fence:partition",
        source="design D6, field report F013",
        sentence="A key means nothing outside its capability and tenant.",
        diverges="In the reference two tenants share a key of one capability.",
    ),
    Promise(
        id="runtime:fence:other-principal",
        source="design D6",
        sentence="Another principal of the tenant gets a key's result only when it may read the action.",
        diverges="The reference answers any caller.",
    ),
    Promise(
        id="runtime:fence:expiry",
        source="design D6",
        sentence="A settled key is forgotten when its time to live has passed on the runtime's clock.",
    ),
    Promise(
        id="runtime:fence:one-send",
        source="field report F020",
        sentence="Twenty parallel submissions of one key make one send and twenty equal answers.",
    ),
    Promise(
        id="runtime:fence:wait-is-bounded",
        source="runtime behaviour §6.3",
        sentence="Who waits too long for a running key is told so, retryably, with owner and reservation.",
    ),
    Promise(
        id="runtime:fence:every-exit-settles",
        source="field report F019",
        sentence="Whatever way an action ends, its key answers at once.",
    ),
    Promise(
        id="runtime:duplicate:stored-result",
        source="design D3",
        sentence="The same submission under its Action ID gets the stored result as it is, and nothing is sent.",
        diverges="The reference runs an unkeyed duplicate again.",
    ),
    Promise(
        id="runtime:duplicate:conflict",
        source="design D3",
        sentence="An Action ID with other content or another principal is refused.",
    ),
    Promise(
        id="runtime:duplicate:next-attempt",
        source="design D3",
        sentence="A stored failure that frees its key does not bind its Action ID; earlier attempts stay as events.",
    ),
    Promise(
        id="runtime:read:one-transaction",
        source="design §3, D3",
        sentence="A safe read has no claim and no intent, and of two equal ones the first to settle answers both.",
    ),
    Promise(
        id="runtime:serial:one-at-a-time",
        source="design D13, field report F055",
        sentence="Turns, forks and deletes of one session run one at a time, in the order of their arrival.",
    ),
    Promise(
        id="runtime:serial:busy",
        source="design D13",
        sentence="Who waits too long for a session fails certain and retryable, and nothing is sent.",
    ),
    Promise(
        id="runtime:serial:own-call",
        source="design D13",
        sentence="A call made on behalf of the call that holds the session fails at once.",
    ),
    Promise(
        id="runtime:serial:runs",
        source="design D13",
        sentence="A run that was started keeps the session that it names closed to forks and deletes for the hold "
        "time, and the next turn learns of it.",
    ),
    Promise(
        id="runtime:serial:run-ends",
        source="design D13",
        sentence="Once any call shows that a run is over its session is open again, unless something else closed it.",
    ),
    Promise(
        id="runtime:serial:hold",
        source="design D13",
        sentence="After a turn that ended uncertain its session stays closed to forks and deletes for the hold time, "
        "across restarts, and the next turn learns which one it was.",
    ),
    Promise(
        id="runtime:crash:definite",
        source="design D4, field report F023",
        sentence="After a crash at any point the action is in a definite state, was sent at most once and is never "
        "sent again by the runtime.",
        diverges="The reference runs interrupted actions again.",
    ),
    Promise(
        id="runtime:crash:settled-stays",
        source="design §8",
        sentence="What was settled before a crash is answered after it.",
    ),
    Promise(
        id="runtime:approval:asked",
        source="runtime behaviour §9.1, §9.2, HTTP surface §15.9",
        sentence="An operation that needs approval is parked with a frozen request and nothing is sent.",
    ),
    Promise(
        id="runtime:approval:unreadable-target",
        source="design D25",
        sentence="A target that can't be read asks no approval; the action fails, certain.",
    ),
    Promise(
        id="runtime:approval:refusals",
        source="HTTP surface §9.4, design D9, D25",
        sentence="Each refused decision says which rule it broke, changes nothing, and starts nothing.",
    ),
    Promise(
        id="runtime:approval:runs-once",
        source="runtime behaviour §9.6, field report F064",
        sentence="An approved action runs exactly once, in the decider's request or after a crash in between.",
    ),
    Promise(
        id="runtime:approval:identical-decision",
        source="design D9",
        sentence="The identical decision again answers the recorded outcome and runs nothing.",
        diverges="The reference refuses it.",
    ),
    Promise(
        id="runtime:approval:decided-when-recorded",
        source="runtime behaviour §9.5",
        sentence="A decision's recorded time is when it was recorded, in the approval as in its event, whatever time "
        "its sender wrote; a decision sent again may carry another one.",
    ),
    Promise(
        id="runtime:approval:input-bound",
        source="field reports F061, F062",
        sentence="An approved action of which any stored part is not the approved one is refused with both digests: "
        "input, key, requester, conversation, target, policy.",
    ),
    Promise(
        id="runtime:approval:in-time",
        source="HTTP surface §9.4, §15.12",
        sentence="A decision counts when its commit comes before the end of the approval's time.",
    ),
    Promise(
        id="runtime:approval:denied-expired",
        source="runtime behaviour §9.6, HTTP surface §15.12",
        sentence="A denied or expired approval fails its action, and nothing is sent.",
    ),
    Promise(
        id="runtime:query:status",
        source="design D8, HTTP surface §5.2",
        sentence="A status says running, pending with its approval id, or the terminal state; an action of nobody or "
        "of another tenant is unknown.",
    ),
    Promise(
        id="runtime:query:scopes",
        source="HTTP surface §3.7",
        sentence="Reading needs the scope of the object, and a wider one for records of other principals.",
    ),
    Promise(
        id="runtime:query:approvals-page",
        source="AIP HTTP surface §9.3, runtime behaviour §19",
        sentence="A page of approvals is one read, whose statements grow with its slices and not with its rows; its "
        "cursor counts what the caller may not see, too.",
    ),
    Promise(
        id="runtime:query:approvals",
        source="HTTP surface §9.2, §9.3",
        sentence="Approvals are listed oldest first, page by page, to those who take part or may decide, and their "
        "input is shown only to holders of both scopes.",
    ),
    Promise(
        id="runtime:message:once",
        source="runtime behaviour §8",
        sentence="A message id is claimed once within the window of its sent_at.",
    ),
    Promise(
        id="runtime:message:with-its-action",
        source="runtime behaviour §8; design §3",
        sentence="The message of an action is used up with it, in its first transaction, or alone where it has none; a "
        "safe read that a crash interrupts leaves no record, so its message may come again.",
    ),
    Promise(
        id="runtime:store:no-input-kept",
        source="design D19, D23",
        sentence="Events and audit hold ids, states and codes; an input is stored only while it is parked.",
    ),
    Promise(
        id="runtime:close:finishes-or-leaves",
        source="design D4",
        sentence="Closing refuses new work and waits a little; a client that hangs up stops nothing.",
    ),
    Promise(
        id="runtime:authority:file",
        source="HTTP surface §9.4",
        sentence="The authority file is refused with path and place when it breaks a rule.",
    ),
    Promise(
        id="runtime:codes:table",
        source="runtime behaviour §20",
        sentence="Each code has the published category, retryability and carrier.",
    ),
)
