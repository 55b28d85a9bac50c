"""What the durable queue promises: tries, dead letters, leases, waiting times; and the fence on every way out."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="queue:retry:declared",
        source="runtime behaviour §11, connector contract §14.5",
        sentence="A failed try of a queued action is repeated only where its capability declares that it may be, at "
        "most as often as declared, and under a key where the declaration asks for one.",
    ),
    Promise(
        id="queue:retry:certain-only",
        source="runtime behaviour §11, design D4",
        sentence="What failed uncertain or is not retryable is never tried again; it ends at once.",
        diverges="The reference looks at the retryable flag alone.",
    ),
    Promise(
        id="queue:retry:back-off",
        source="runtime behaviour §11",
        sentence="The next try comes later than the last one: after what the provider asked for, else after one, two, "
        "four … seconds, at most thirty; more only by an injected source.",
    ),
    Promise(
        id="queue:retry:durable",
        source="issue 4",
        sentence="Number of tries and time of the next one survive a restart, and no restart makes a further try.",
    ),
    Promise(
        id="queue:retry:told",
        source="runtime behaviour §15",
        sentence="A scheduled try and the end of a queued action are events of the same transaction, and who follows "
        "the action is woken for them.",
    ),
    Promise(
        id="queue:retry:key-waits",
        source="design D2, D3",
        sentence="While a queued action waits for another try, its key and its Action ID answer that it is under way.",
    ),
    Promise(
        id="queue:dead-letter:readable",
        source="runtime behaviour §3, §11",
        sentence="A queued action that fails for good is shown as dead-lettered, with reason, tries and last error, "
        "and its failed result stays readable.",
    ),
    Promise(
        id="queue:dead-letter:again",
        source="design D3",
        sentence="A dead letter whose failure frees its key may be submitted again, as a new attempt with tries of its "
        "own.",
    ),
    Promise(
        id="queue:delay:in-time",
        source="runtime behaviour §4, §21.4",
        sentence="What waits longer than its queue delay ends when its time comes, also while no worker has room, and "
        "its key is free.",
    ),
    Promise(
        id="queue:worker:rests",
        source="issue 4",
        sentence="The worker sleeps until something is due and wakes for what is put into the queue.",
    ),
    Promise(
        id="queue:lease:one-owner",
        source="runtime behaviour §14, design D4",
        sentence="What a worker took has a numbered lease that it renews; only the newest lease records an intent, "
        "schedules a try or settles.",
    ),
    Promise(
        id="queue:lease:void-at-start",
        source="design D4",
        sentence="Where a store has one owner, a start finds every lease void and nothing stays with who is gone.",
    ),
    Promise(
        id="queue:approved:waits-for-session",
        source="design D9, D13; field report F070",
        sentence="An approved action that meets a busy session waits in the queue with its approval, runs once when "
        "the session is free, and fails retryably when the approval's time is over.",
    ),
    Promise(
        id="queue:cancel:between-tries",
        source="runtime behaviour §10, §11",
        sentence="An action that was asked to stop is not tried again, and one that waits for a try is cancelled at "
        "once.",
    ),
    Promise(
        id="fence:scope:each",
        source="runtime behaviour §6.1, design D5, D6",
        sentence="A key means something within its declared scope and its tenant only, whichever scope is declared.",
    ),
    Promise(
        id="fence:exit:at-once",
        source="issue 4, field report F019",
        sentence="Whatever way an action ends, its key is settled with the result or free the moment it does.",
    ),
    Promise(
        id="fence:collision:declared",
        source="runtime behaviour §6.3",
        sentence="A used key is answered, refused, or compared with its input, as the contract declares.",
    ),
    Promise(
        id="fence:processes:one-send",
        source="issue 4, field report F020",
        sentence="Twenty parallel submissions of one key from two client processes make one mutating request, and "
        "twenty answers that are equal or say that it is in progress.",
    ),
)
