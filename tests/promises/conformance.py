"""What the proof of the whole shows: the connector kit, the manifest report, memory under a stream."""

from tests.promises.promise import Promise

_KIT = "runtime behaviour §21.1, issue 3"

PROMISES = (
    Promise(
        id="conformance:kit:complete",
        source=_KIT,
        sentence="Each of the kit's 38 assertions is proven here, or listed with the reason why it is not.",
    ),
    Promise(
        id="conformance:kit:admission",
        source=_KIT,
        sentence="A catalogue takes all offers or none, and what it publishes is valid; no endpoint is asked.",
    ),
    Promise(
        id="conformance:kit:identity",
        source=_KIT,
        sentence="The endpoint learns the authenticated caller, its tenant and trace and nothing that a payload claims;"
        " another tenant reaches nothing; the key is in no manifest, diagnosis or store.",
    ),
    Promise(
        id="conformance:kit:retry",
        source=_KIT,
        sentence="A queued read of an endpoint that answers 503 keeps the retryable error, is tried again later, and "
        "is one dead letter after its last try.",
    ),
    Promise(
        id="conformance:kit:approvals",
        source=_KIT,
        sentence="An outsider decides nothing, two approvals are needed where two are asked, each is kept with its "
        "evidence, and what a run asks is answered once.",
    ),
    Promise(
        id="conformance:kit:schema",
        source=_KIT,
        sentence="Bad input reaches no endpoint; prose instead of a structured result is refused.",
    ),
    Promise(
        id="conformance:kit:idempotency",
        source=_KIT,
        sentence="Two equal calls at once start one run; other content under the same Action ID is refused; Action ID "
        "and run id stay together over a restart.",
    ),
    Promise(
        id="conformance:kit:cancellation",
        source=_KIT,
        sentence="Cancelled before dispatch sends nothing, in flight stops the run once, late preserves the result.",
    ),
    Promise(
        id="conformance:kit:streaming",
        source=_KIT,
        sentence="Chunks are visible while the turn runs and count from 0; one `done` ends them; a limit of one event "
        "stores one chunk and fails.",
    ),
    Promise(
        id="conformance:kit:errors",
        source=_KIT,
        sentence="A 503 of a read is temporary and certain, of a mutation uncertain and settled; no secret is told.",
    ),
    Promise(
        id="conformance:kit:restart",
        source=_KIT,
        sentence="A run whose id was lost in a crash is uncertain and never started again; cursors outlive it.",
    ),
    Promise(
        id="conformance:kit:audit",
        source=_KIT,
        sentence="An approved delete leaves a chain of receipts, events and an audit record that name its correlation; "
        "no record holds an authorization, and the key is nowhere.",
    ),
    Promise(
        id="conformance:manifest:report",
        source="runtime behaviour §21.2, connector contract §22, design D22",
        sentence="The manifest report finds in what is published the known deviations, exactly these.",
        diverges="The strict contract check wants a key and an approval for what the guide lets run without.",
    ),
    Promise(
        id="conformance:memory:stream",
        source="issue 3",
        sentence="The server grows by less than 40 MiB while 60 MiB of a stream pass, whatever its reader does.",
    ),
    Promise(
        id="conformance:parity:page",
        source="design §4, issue 3",
        sentence="The page for users names every decision in which this differs from the reference, and every "
        "deviation that the manifest report finds.",
    ),
)
