"""What the HTTP surface, the settings file and the composition promise."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="server:body:one-meaning",
        source="design D21, HTTP surface §17.7",
        sentence=(
            "Bytes that two readers could understand differently are refused with an error envelope, on every route."
        ),
        diverges="the reference answers malformed JSON in plain text",
    ),
    Promise(
        id="server:body:size",
        source="design D21",
        sentence="A body over the advertised size is answered 413 `envelope.too_large`, announced or chunked.",
        diverges="the reference does not enforce its advertised size",
    ),
    Promise(
        id="server:message:checks-in-order",
        source="HTTP surface §4",
        sentence=(
            "An envelope is checked for size, JSON, schema, bearer and replay in this order, and the first fault "
            "answers."
        ),
    ),
    Promise(
        id="server:message:reply-addressing",
        source="HTTP surface §4, wire model §4.1",
        sentence=(
            "A reply names the request, its session and correlation, comes from the manifest's agent and goes to "
            "the sender as sent."
        ),
    ),
    Promise(
        id="server:message:dispatch",
        source="HTTP surface §4",
        sentence=(
            "Every served kind of message gets the body that belongs to it; a known kind that is not served is "
            "`capability.unsupported`."
        ),
    ),
    Promise(
        id="server:message:every-read",
        source="HTTP surface §4, wire model §4.2",
        sentence="What a read route tells about actions, events, approvals and receipts, the request of that kind "
        "tells in an envelope; so `aipctl approval list` works here.",
    ),
    Promise(
        id="server:message:failed-read-is-200",
        source="HTTP surface §4",
        sentence=(
            "A read sent as an envelope that fails is HTTP 200 with an error body; a refused command has its "
            "category's status."
        ),
    ),
    Promise(
        id="server:message:client-gone",
        source="design §3, brief of the message route",
        sentence="An action runs to its end although the client that submitted it has gone.",
    ),
    Promise(
        id="server:connection:patience",
        source="second look at issue 2: slow clients",
        sentence=(
            "A client has a minute to send a request, and to read on in a stalled answer; an operation may take longer."
        ),
        diverges="the reference has no server-side request timeout",
    ),
    Promise(
        id="server:connection:half-closed",
        source="RFC 9112 section 9.6",
        sentence="A client that closed its sending half behind a whole request hears the answer.",
    ),
    Promise(
        id="server:auth:bearer-rules",
        source="HTTP surface §3.2",
        sentence=(
            "Only `Bearer` with one known token lets a request in; the four messages tell missing, invalid and "
            "malformed apart."
        ),
    ),
    Promise(
        id="server:auth:expiry",
        source="design D24",
        sentence="A token is refused from the moment it expires, and the answer says when that was.",
    ),
    Promise(
        id="server:auth:reload",
        source="design D24",
        sentence="Reloading puts new tokens in place of the old ones; a faulty file leaves the old ones in place.",
    ),
    Promise(
        id="server:auth:strong-tokens",
        source="field report F076",
        sentence="Where other machines can reach the server, a token of fewer than 16 characters stops the start.",
    ),
    Promise(
        id="server:auth:principal-kind",
        source="design D22, HTTP surface §14.1",
        sentence="The first segment of a principal's id gives its kind; anything unknown is an agent.",
    ),
    Promise(
        id="server:reads:query",
        source="HTTP surface §5",
        sentence=(
            "Unknown query parameters are ignored and malformed ones answered `query.invalid`, by name and "
            "without their value."
        ),
    ),
    Promise(
        id="server:reads:ids-are-data",
        source="field report F080",
        sentence="Percent-encoded ids reach the runtime as written and never change the route.",
    ),
    Promise(
        id="server:tenancy:own-tenant",
        source="HTTP surface §17.3, design D18",
        sentence="`tenant_id` may name the token's tenant on every read; another one is `auth.tenant_mismatch`.",
    ),
    Promise(
        id="server:tenancy:nothing-leaks",
        source="field report F077",
        sentence="With another tenant's token no route shows that something exists, not even by a count.",
    ),
    Promise(
        id="server:errors:one-table",
        source="HTTP surface §10.2, wire model §10.3",
        sentence="The status of an error envelope follows from its category, except where the edge speaks plain HTTP.",
    ),
    Promise(
        id="server:errors:no-detail",
        source="design D19, issue 2",
        sentence=(
            "A fault of the server is answered without detail and logged by type and place, without message or payload."
        ),
    ),
    Promise(
        id="server:errors:unrouted",
        source="own choice",
        sentence="An unknown route is 404 and a wrong method 405, both as error envelopes.",
    ),
    Promise(
        id="server:wire:schemas",
        source="issue 2",
        sentence="Every envelope and body that the server emits validates against the hand-written schemas.",
    ),
    Promise(
        id="server:catalogue:own-shape",
        source="HTTP surface §8",
        sentence="The catalogue pages what the tenant sees and answers its own errors in its own shape.",
    ),
    Promise(
        id="server:manifest:public-part",
        source="design D24",
        sentence=(
            "Without a bearer the manifest shows the server alone; with one also the tenant's capabilities, "
            "without origins."
        ),
    ),
    Promise(
        id="server:me:who-am-i",
        source="design D24",
        sentence=(
            "`/aip/v1/me` tells a caller its principal, tenant, scopes, invocation patterns and when its token ends."
        ),
    ),
    Promise(
        id="server:health:liveness",
        source="HTTP surface §12",
        sentence="Health answers without a bearer; readiness is 503 until runtime and store answer.",
    ),
    Promise(
        id="server:log:no-payload",
        source="design D19, issue 2",
        sentence=(
            "Each request is one log event with route template, status and principal; no input, token or query "
            "value appears."
        ),
    ),
    Promise(
        id="log:terminal:neutralised",
        source="style anchors 2.10, second look at issue 2",
        sentence="No control or direction character that a caller chose reaches an operator's terminal as itself.",
    ),
    Promise(
        id="log:text:plain",
        source="docs/how-to/operate.md, Log",
        sentence='`[log] format = "text"` writes plain lines into a file or a journal; colours are for terminals.',
    ),
    Promise(
        id="settings:file:sentences",
        source="issue 2",
        sentence=(
            "A settings file that can't be used is refused by one sentence with file, line, member, rule and next"
            " step, never a value."
        ),
    ),
    Promise(
        id="settings:file:nearest-name",
        source="issue 2",
        sentence="An unknown member is refused with the nearest known name.",
    ),
    Promise(
        id="settings:endpoint:lower-case",
        source="field report F008",
        sentence="Endpoint ids are lower-cased when they are registered, and two that then are equal are refused.",
    ),
    Promise(
        id="settings:server:non-loopback",
        source="field report F076, HTTP surface §3.5",
        sentence="A bind that other machines can reach needs an https public_base_url, whatever its spelling.",
    ),
    Promise(
        id="settings:key-file:missing",
        source="field report F074",
        sentence="A key file that is not there is told with which key belongs into it, and with its permissions.",
    ),
    Promise(
        id="settings:template:loads",
        source="issue 2",
        sentence="The settings file that `init` writes loads back to the values it was asked for.",
    ),
    Promise(
        id="app:connectors:entry-points",
        source="design §3",
        sentence="Connectors come from the entry-point group `aip.connectors` only.",
    ),
    Promise(
        id="app:serve:stops",
        source="issue 2",
        sentence="A server ends within five seconds of being asked to, although a request is still running.",
    ),
    Promise(
        id="app:serve:ready",
        source="issue 2",
        sentence="Port 0 picks a free port, and the base URL is told once, when requests are answered.",
    ),
    Promise(
        id="app:serve:refusals",
        source="design §6, field report F113",
        sentence="A port in use and a data directory in use are refused with the cause and the next step.",
    ),
)
