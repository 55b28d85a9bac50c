"""What the runtime's engine promises: connectors' state, interrupted actions, runs, capacity, lifecycle."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="runtime:state:compare-and-set",
        source="design §3; runtime behaviour §13",
        sentence="What a connector keeps is stored only where the version that it read still stands; of several "
        "writers exactly one succeeds, and the others are told.",
    ),
    Promise(
        id="runtime:state:durable",
        source="design §3; runtime behaviour §13",
        sentence="What a connector keeps is there after a crash as soon as storing it returned, also for another "
        "action of its tenant.",
    ),
    Promise(
        id="runtime:state:apart",
        source="design §3, D18; runtime behaviour §19",
        sentence="Neither another connector nor another tenant sees or blocks a key; a key has 1 to 1024 characters "
        "and no NUL.",
    ),
    Promise(
        id="runtime:state:store-away",
        source="design §3",
        sentence="A store that can't be reached is a certain, retryable failure of the connector's step.",
    ),
    Promise(
        id="runtime:interrupted:observed",
        source="design D4; contract.handler, RecoveryRule",
        sentence="An action that was interrupted after its intent and whose row says `recovery: observe` goes on at "
        "the start: its handler is told that it was interrupted, prepares nothing, and its end is the action's end. "
        "However often that is interrupted, nothing is sent again.",
    ),
    Promise(
        id="runtime:interrupted:never-certain-by-accident",
        source="design D4",
        sentence="What keeps an interrupted action from being looked at (a withdrawn capability, a failed check, a "
        "busy session, an unreadable input, a cancel) ends it uncertain.",
    ),
    Promise(
        id="runtime:interrupted:session-kept",
        source="design D13",
        sentence="An interrupted action keeps its session: nobody comes between.",
    ),
    Promise(
        id="runtime:capacity:refused",
        source="runtime behaviour §19, §20; issue 4",
        sentence="When as many actions run, wait in the queue or wait for a decision as the settings allow, of one "
        "tenant or of all, the next one is refused as temporary with a time to wait: nothing is stored or sent, its "
        "key stays free, and submissions at once never overrun the limit.",
    ),
    Promise(
        id="runtime:capacity:repeats",
        source="runtime behaviour §20; design D3, D7",
        sentence="Repeats of what was taken on are answered while a limit is reached, and a place that is free again "
        "is given to whoever comes next.",
    ),
    Promise(
        id="runtime:lifecycle:one-table",
        source="runtime behaviour §3",
        sentence="One table holds every legal move of an action with its cause; each statement that writes a state "
        "moves from the states that the table names, under the guards that it names, and changes nothing otherwise.",
    ),
    Promise(
        id="runtime:lifecycle:too-late",
        source="runtime behaviour §3, §10; design D8, D9",
        sentence="What comes too late (a second settlement, a cancel, another decision) changes neither the action nor "
        "its events, and a cancel answers what there is.",
    ),
    Promise(
        id="runtime:background:goes-on",
        source="design §3, D4",
        sentence="What breaks the queue, the approvals' clock or the erasure of text once is logged and stops none of "
        "them for good.",
    ),
)
