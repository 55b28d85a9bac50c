"""What connections to an endpoint promise."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:transport:ids-are-encoded",
        source="design D12; field reports F007, D01, D02",
        sentence="Every id that an endpoint may have issued reaches it as one percent-encoded segment.",
        diverges="The reference turns a space into a plus sign and lets `.` and `..` be folded.",
    ),
    Promise(
        id="hermes:transport:fresh-connections-for-mutations",
        source="design D11",
        sentence="A mutation travels only on a new connection or one that a mutation left less than a second ago.",
    ),
    Promise(
        id="hermes:transport:quiet-connections-only",
        source="design D11",
        sentence="A connection on which anything came behind its last answer, an end too, carries no other request.",
    ),
    Promise(
        id="hermes:transport:idle-ends",
        source="own choice",
        sentence="A connection that nobody uses is closed after its idle time, also where nothing is asked any more.",
    ),
    Promise(
        id="hermes:transport:early-answer",
        source="design D11",
        sentence="An answer counts though the endpoint has not read the request; its connection carries no other one.",
    ),
    Promise(
        id="hermes:transport:any-address",
        source="own choice; RFC 8305",
        sentence="A host is reached by any of its addresses; one that hesitates does not hold up the next.",
    ),
    Promise(
        id="hermes:transport:bounded-answers",
        source="connector contract §10; field report F103",
        sentence="An answer over the limit is refused by its announced size, else by its real one.",
    ),
    Promise(
        id="hermes:transport:large-transcript",
        source="field report F103",
        sentence="20 MiB of messages end as the size failure with its next step, with the server under 100 MiB, and "
        "can be read by `limit` and `offset` where the endpoint pages.",
    ),
    Promise(
        id="hermes:transport:no-redirects",
        source="connector contract §10",
        sentence="A redirect is never followed.",
    ),
    Promise(
        id="hermes:transport:no-cookies",
        source="design D18; connector contract §10",
        sentence="A cookie of one answer goes along with no other call.",
    ),
    Promise(
        id="hermes:transport:loopback-meets-no-proxy",
        source="field report F112",
        sentence="Loopback traffic meets no proxy of the environment; other hosts use it.",
    ),
    Promise(
        id="hermes:transport:proxy-certain",
        source="design D11",
        sentence="A proxy that opens no tunnel or cannot be used is a certain failure, and nothing goes around it.",
    ),
    Promise(
        id="hermes:transport:packed-answers",
        source="connector contract §10; field report F103",
        sentence="A compressed answer is unpacked up to the limit of an answer, whatever a few bytes stand for.",
    ),
    Promise(
        id="hermes:transport:cancelled-leaves-nothing",
        source="connector contract §15",
        sentence="A cancelled send closes its connection, at whatever step it was, and is not repeated.",
    ),
)
