"""What is promised of error codes as a whole, and of the rules behind them that no published capability shows."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="errors:table-whole",
        source="issue 4; runtime behaviour §20",
        sentence="One table holds every error code, published or ours, with category, flag, carrier and status; the "
        "source sends no other, and each row is provoked or says why nobody gets it here.",
    ),
    Promise(
        id="approval:operator-differs",
        source="runtime behaviour §9.3 step 7, §20",
        sentence="Where a contract says that the operator must differ, the operator neither approves nor denies, also "
        "where it may be the requester; where it does not say so, it does.",
    ),
    Promise(
        id="approval:withdrawn",
        source="runtime behaviour §20",
        sentence="An approved action whose capability is no longer offered fails, certain, and sends nothing.",
    ),
    Promise(
        id="approval:unreadable-said",
        source="issue 4 (a runtime that never lies)",
        sentence="An approval whose stored row can't be read is refused as `approval.unreadable` where it is decided "
        "or asked for, is left out of lists, and is named in the log without what was stored.",
    ),
)
