"""What the tenants of one deployment promise each other: nobody sees, blocks or finds out about another one."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="tenants:queue:apart",
        source="issue 4, bad input",
        sentence="However many queued actions a tenant has, running or waiting, another tenant's start as if they were "
        "alone, within the time that the queue is published with.",
        diverges="The reference has one queue, and whoever comes first keeps all of it.",
    ),
    Promise(
        id="tenants:messages:apart",
        source="issue 4, bad input; runtime behaviour §8",
        sentence="A message id is taken within its tenant: nobody can take the ids of another one, nor learn which "
        "were used.",
        diverges="The reference claims ids for the whole deployment.",
    ),
    Promise(
        id="tenants:cursors:apart",
        source="issue 4, bad input",
        sentence="Whether a cursor is accepted depends on the own tenant's events alone, and so does what pruning "
        "ends.",
    ),
    Promise(
        id="queue:clock:set-back",
        source="issue 4, lifecycle",
        sentence="A clock that is set back holds up nothing that was queued before: it waits from then on.",
    ),
    Promise(
        id="tenants:probes:same-bytes",
        source="issue 4, bad input; runtime behaviour §18; field report F065",
        sentence="On every route another tenant's id and one that nobody has get the same answer, whatever the scopes.",
    ),
    Promise(
        id="tenants:ids:apart",
        source="issue 4, bad input; design D3, D6",
        sentence="An Action ID, a key and a message id that one tenant used are as free for another as if it had not.",
    ),
)
