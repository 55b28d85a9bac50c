"""What the connector promises."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="hermes:runs:ends",
        source="design D13",
        sentence="A started run is named, and the status or the stream's event that ends it names it again, also where "
        "it failed; that a run is unknown, goes on or was asked to stop does not.",
    ),
    Promise(
        id="hermes:send:one-mutating-send",
        source="design §8, D11; field reports F016, F017",
        sentence="One attempt sends at most one mutating request, however it fails.",
    ),
    Promise(
        id="hermes:send:safe-reads-repeat",
        source="design D22",
        sentence="A safe read is sent up to three times while its failure may pass; the waits honour Retry-After.",
    ),
    Promise(
        id="hermes:send:reads-of-a-mutation-once",
        source="request counts: patch 1, delete 2, turn 2, fork 3, create 0",
        sentence="A read before or after a mutation is sent once, whatever it answers.",
    ),
    Promise(
        id="hermes:send:deadline",
        source="design D18; connector contract §13.1",
        sentence="A passed deadline sends nothing; a deadline during the exchange leaves a mutation uncertain.",
    ),
    Promise(
        id="hermes:answer:half-names",
        source="own choice: such an answer made its result unreadable for ever",
        sentence="Half a surrogate pair in a member's name of an answer becomes U+FFFD, since no message can hold it; "
        "texts stay as they came.",
    ),
    Promise(
        id="hermes:answer:certain-is-proven",
        source="design D2, D11; field report F025",
        sentence="A mutation's failure is certain only where the status, the code or the connection proves it.",
        diverges="The reference calls every 429, 5xx and connection failure of a mutation uncertain.",
    ),
    Promise(
        id="hermes:answer:fork-is-not-atomic",
        source="design D11, D16; connector contract §24.3; field report F022",
        sentence="A fork's 400 is uncertain unless its code comes before any change; the message names both sessions.",
        diverges="The reference calls it a certain rejection.",
    ),
    Promise(
        id="hermes:answer:a-success-is-an-object",
        source="design D11; field report D04",
        sentence="A 2xx without a JSON object is `invalid_response`, uncertain for a mutation.",
        diverges="The reference turns any text into a success.",
    ),
    Promise(
        id="hermes:answer:nothing-that-breaks-later",
        source="design §8, D11",
        sentence="An answer that could not be stored is refused where it arrives, with the outcome that it proves.",
    ),
    Promise(
        id="hermes:answer:odd-ids",
        source="design D12; field reports D01, D02",
        sentence="An id that no path can carry, named by an endpoint, ends no attempt and is never asked for.",
    ),
    Promise(
        id="hermes:answer:text-errors",
        source="connector contract §8.6; hermes API page §2.1, §7",
        sentence="An error that is a bare text (jobs) is kept like any other and judged by its status: a job's 500 for "
        "a bad schedule proves nothing.",
    ),
    Promise(
        id="hermes:answer:its-own-word",
        source="design D20; hermes API page §6.2",
        sentence="A 2xx that says of itself that the turn did not complete is passed on with a warning.",
    ),
    Promise(
        id="hermes:answer:passed-through",
        source="connector contract §6.10; field report F101",
        sentence="The provider's members reach the output unchanged.",
    ),
    Promise(
        id="hermes:answer:provider-details",
        source="design D10; field reports F088, D05",
        sentence="Status, code and a bounded, cleaned text of a provider error are kept in `details.provider`.",
        diverges="The reference keeps the status alone.",
    ),
    Promise(
        id="hermes:answer:retry-after",
        source="design D10",
        sentence="Retry-After, seconds or date, is kept, and becomes `retry_after_ms` where a repeat is sensible.",
    ),
    Promise(
        id="hermes:errors:name-the-cause",
        source="field report F073",
        sentence="A message names endpoint, session and next step, never an address; only 401 and 403 blame the key.",
    ),
    Promise(
        id="hermes:errors:tls",
        source="field report F073",
        sentence="An endpoint that answers no TLS, or shows a certificate that nobody trusts, is named as that: "
        "certain, without a word about the key, which has not left.",
    ),
    Promise(
        id="hermes:errors:again-only-where-free",
        source="design D2, D3",
        sentence="A message advises to send the same action again only where its failure binds neither key nor id.",
    ),
    Promise(
        id="hermes:errors:no-credentials",
        source="design D19, D22; field report F079",
        sentence="No credential and no memory scope leaves through an error, a repr or a cause.",
    ),
    Promise(
        id="hermes:errors:one-namespace",
        source="design §3; connector contract §13.1",
        sentence="What only the runtime noticed is told in the connector's codes and details.",
    ),
    Promise(
        id="hermes:request:mapping",
        source="connector contract §4.1, §7",
        sentence="Each published operation becomes the request that its row states.",
    ),
    Promise(
        id="hermes:request:body",
        source="connector contract §6.2–§6.4, §7; field reports F017, D07, D13",
        sentence="The body is the nested one or the input, without what steers transport; a fork sends at least {}.",
        diverges="The reference sends idempotency_key and session_key inside the body of a flat create.",
    ),
    Promise(
        id="hermes:api:message-content",
        source="API server §4; design §5",
        sentence="A message says, and is kept as, what release 0.19.0 reads in it, by connector and endpoint alike.",
    ),
    Promise(
        id="hermes:request:query",
        source="connector contract §6.7; field report F104",
        sentence="The query holds the row's parameters, sorted; integers stay integers.",
    ),
    Promise(
        id="hermes:request:refused-before-sending",
        source="design D12; connector contract §6; field reports F004, F010, F080",
        sentence="What can't become a well-formed request, or names two sessions, is refused and nothing is sent.",
    ),
    Promise(
        id="hermes:request:titles",
        source="field report F089",
        sentence="A title is measured in code points after cleaning; over 100 it is refused before sending.",
    ),
    Promise(
        id="hermes:request:one-or-refused",
        source="design §3",
        sentence="Any JSON input maps to exactly one well-formed request or is refused.",
    ),
    Promise(
        id="hermes:headers:trusted-context",
        source="design D18; connector contract §9, §24.11",
        sentence="Headers come from the authenticated context; a payload can set none.",
        diverges="The reference lets a payload's `_aip` pass where the runtime has none.",
    ),
    Promise(
        id="hermes:headers:own-call",
        source="field report F058",
        sentence="Of calls that run at once each bears its own endpoint, key, tenant, principal and memory scope.",
    ),
    Promise(
        id="hermes:headers:idempotency-key",
        source="connector contract §9; field report F017",
        sentence="The action's key travels as Idempotency-Key with every mutation.",
        diverges="The reference sends it with reads too.",
    ),
    Promise(
        id="hermes:request:accepted-by-an-endpoint",
        source="issue 3",
        sentence="Every published operation is answered by the embedded endpoint as its schemas say.",
    ),
    Promise(
        id="hermes:request:session-where-it-is-read",
        source="field report F004; design D12",
        sentence="A session id travels where its operation reads it: path, header (chat) or body (run_start); where "
        "none is read it is refused.",
        diverges="The reference sends it as a header everywhere, also to routes that ignore it.",
    ),
    Promise(
        id="hermes:headers:no-session-id",
        source="field reports F005, D02",
        sentence="Routes but chat completions get no X-Hermes-Session-Id: path or body alone names the session.",
        diverges="The reference repeats the id in a header that these routes ignore.",
    ),
    Promise(
        id="hermes:headers:session-key-is-explicit",
        source="field report F010",
        sentence="A memory scope is sent only when given, and a turn says whether one was.",
    ),
    Promise(
        id="hermes:headers:health-is-anonymous",
        source="connector contract §8.1",
        sentence="A route without authentication learns neither key nor caller.",
    ),
    Promise(
        id="hermes:headers:limits",
        source="connector contract §9",
        sentence="A value that no header can carry is refused before sending.",
    ),
    Promise(
        id="hermes:check:tenant",
        source="design D18; connector contract §16; field report F077",
        sentence="A call of another tenant is refused for every operation before anything is read or sent.",
    ),
    Promise(
        id="hermes:check:credential",
        source="connector contract §2",
        sentence="Without a key only health works; the refusal leaves the idempotency key free.",
    ),
    Promise(
        id="hermes:serial:one-key-per-session",
        source="design D13",
        sentence="Turns, forks and deletes of one session share one serial key, chat and run_start that name it too.",
    ),
    Promise(
        id="hermes:describe:target",
        source="design D25",
        sentence="An approval is about what can be read of its target (row, response, run, job): times, counts and "
        "states as they are, texts as hashes.",
    ),
    Promise(
        id="hermes:prepare:target-changed",
        source="design D25",
        sentence="A target of which a compared member changed since approval was asked gets nothing sent; what moves "
        "by itself is not compared.",
    ),
    Promise(
        id="hermes:prepare:named",
        source="design D13, D14; connector contract §8.3, §8.5",
        sentence="A chat or run that names a session reads its row first; a missing row is made by the call, an "
        "unreadable one stops it.",
    ),
    Promise(
        id="hermes:prepare:superseded",
        source="design D14; field report F001",
        sentence="A turn on a compressed session is refused and names the continuation only where it is proven.",
        diverges="The reference forwards it; 0.19.0 then stores the turn where no read shows it.",
    ),
    Promise(
        id="hermes:prepare:closed",
        source="design D14",
        sentence="A turn on a closed session is forwarded, or refused where the endpoint's setting says so.",
    ),
    Promise(
        id="hermes:prepare:facts",
        source="design §5, D23",
        sentence="What reconciliation needs is durable before sending: ids, counts, times and hashes, never text.",
    ),
    Promise(
        id="hermes:prepare:reads-are-certain",
        source="design §8, D11",
        sentence="A read that fails before sending makes a certain failure, and nothing is sent.",
    ),
    Promise(
        id="hermes:confirm:two-seconds",
        source="design §3",
        sentence="A read-back is bounded and never changes the outcome.",
    ),
    Promise(
        id="hermes:evidence:session",
        source="design D15; field reports F001, F002",
        sentence="`_aip.session` calls a moved id a compression only when each row of the parent chain proves it.",
    ),
    Promise(
        id="hermes:evidence:turn",
        source="design D20",
        sentence="`_aip.turn` says from the row before and after how much of a turn was stored.",
    ),
    Promise(
        id="hermes:evidence:turn-compacted",
        source="design D20",
        sentence="A transcript compacted in place, or made again, during a turn is never called `no` or `user_only`.",
    ),
    Promise(
        id="hermes:evidence:no-visible-text",
        source="field report F082",
        sentence="A turn answered without text carries a warning and is not repeated.",
    ),
    Promise(
        id="hermes:evidence:previous-uncertain",
        source="design D13",
        sentence="A turn names the uncertain one before it that may still be running.",
    ),
    Promise(
        id="hermes:evidence:patch",
        source="field reports F086, D10",
        sentence="`_aip.patch` shows requested and effective values, what changed, and an earlier close reason.",
    ),
    Promise(
        id="hermes:evidence:fork",
        source="design D16",
        sentence="A fork is read back on both sides whatever its answer, unless it never began.",
    ),
    Promise(
        id="hermes:evidence:fork-untitled",
        source="design D16; API server §3.8",
        sentence="A refused fork whose child has no title is partial, also where the title was to be automatic.",
    ),
    Promise(
        id="hermes:health:every-endpoint",
        source="connector contract §2, §8.1",
        sentence="Health is asked per endpoint without a credential; only `ok` is well.",
    ),
    Promise(
        id="hermes:connector:offers",
        source="connector contract §3; design D18",
        sentence="Endpoints are offered in id order, operations in row order; a turn publishes its endpoint's timeout.",
    ),
    Promise(
        id="hermes:endpoint:rules",
        source="connector contract §2",
        sentence="An endpoint keeps the rules for id, origin, tenant and name; its id is lower-cased.",
    ),
    Promise(
        id="hermes:secret:shows-itself-nowhere",
        source="connector contract §17; field report F079",
        sentence="A credential appears in no repr, text, format, copy, pickle or JSON.",
    ),
    Promise(
        id="hermes:secret:equality",
        source="field report F074",
        sentence="Two credentials are the same when their texts are, and no text is equal to a credential.",
    ),
    Promise(
        id="hermes:secret:file-rules",
        source="HTTP surface §3.4",
        sentence="A credential file is regular, its owner's alone, bounded and UTF-8; the refusal names the remedy.",
    ),
    Promise(
        id="hermes:redact:field-classes",
        source="design D19",
        sentence="Fields are redacted by their class and whole name: a bearer never survives, input_tokens does.",
    ),
    Promise(
        id="hermes:redact:credentials-in-text",
        source="design D10, D19",
        sentence="What looks like a credential leaves a foreign text; ordinary sentences stay.",
    ),
)
