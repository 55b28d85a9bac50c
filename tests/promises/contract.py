"""What the contract promises: rows, schemas, published capabilities, catalogue, manifest."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="contract:rows:unknown-member-stops",
        source="style anchors 2.2",
        sentence="An unknown, missing or repeated member of capabilities.yaml stops loading and is named with its row.",
    ),
    Promise(
        id="contract:rows:schema-agrees",
        source="design §2",
        sentence="capabilities.yaml holds under its published schema, which knows the same members as the loader.",
    ),
    Promise(
        id="contract:rows:consistent",
        source="wire model §9.1–9.3",
        sentence="Reads are retry safe and need no key; deletes say high risk and need approval and key; personal "
        "data is redacted.",
    ),
    Promise(
        id="contract:rows:reference-values",
        source="connector contract §4.1, §4.2, §4.3, §5",
        sentence="Each row publishes the values of the reference's tables.",
        diverges="D9: requester_must_differ is true. D18: session reads are confidential with PII; turns publish the "
        "endpoint's turn timeout, 900 s by default.",
    ),
    Promise(
        id="contract:published:form",
        source="connector contract §3",
        sentence="The published capabilities of an endpoint keep their exact JSON form.",
    ),
    Promise(
        id="contract:published:self-contained",
        source="wire model §9.2",
        sentence="Every published schema compiles under draft 2020-12, refers to nothing outside itself and accepts "
        "its own examples.",
    ),
    Promise(
        id="contract:published:digests",
        source="HTTP page §8",
        sentence="Digests are the SHA-256 of the canonical contract and schemas, and change with them.",
    ),
    Promise(
        id="contract:input:new-ids",
        source="design D12, connector contract §7.2, D11 of the derived checks",
        sentence="Ids of new sessions (create, its alias, fork child) are refused before anything is stored when a "
        "rule of the guide is broken.",
        diverges="The reference leaves create and fork open; fork has no rule there at all. A lone dot is refused too, "
        "since no path could name the session.",
    ),
    Promise(
        id="contract:input:issued-ids",
        source="field report F007, design D12",
        sentence="Every session id that an endpoint may have issued passes; only what no path can carry is refused.",
    ),
    Promise(
        id="contract:input:titles",
        source="field report F089, design D12",
        sentence="A title is counted in code points after clean-up; 101 are refused in create, patch and fork.",
    ),
    Promise(
        id="contract:input:patch-closed",
        source="design D12, D10 of the derived checks",
        sentence="A patch holds a title, an end reason or both and nothing else; an end reason that is reserved, blank "
        "or no text is refused.",
        diverges="The reference's schema is open.",
    ),
    Promise(
        id="contract:input:chat-message",
        source="design D12, D13 of the derived checks",
        sentence="A turn needs a message that is not blank in a place where it is read.",
        diverges="The reference lets the provider refuse.",
    ),
    Promise(
        id="contract:input:one-question",
        source="connector contract §8.3–§8.5; design D12",
        sentence="A completion has exactly one of prompt, query and messages; a response or run an input; an answer "
        "to an approval one choice.",
        diverges="The reference lets the provider refuse; a list of texts as a run's input then ends in an uncertain "
        "500.",
    ),
    Promise(
        id="contract:input:session-place",
        source="field report F004; design D12",
        sentence="A session is named where the operation reads it, by an id that it may make, or the input is refused; "
        "history that the stored one would replace is refused with it.",
        diverges="The reference accepts a session id everywhere.",
    ),
    Promise(
        id="contract:input:jobs",
        source="connector contract §8.6",
        sentence="Inputs of jobs are closed and bounded, a job id is twelve hexadecimal digits and nothing after them.",
        diverges="The reference requires name and schedule beside a body that alone is sent.",
    ),
    Promise(
        id="contract:input:accepted-is-sendable",
        source="design D12",
        sentence="What a schema accepts becomes a request, unless two places that may repeat a member differ.",
    ),
    Promise(
        id="contract:reference:generated",
        source="issue 3",
        sentence="docs/reference/capabilities.md is what the rows say: one table, and per operation input, output, "
        "risk, replay, key, approval and errors.",
    ),
    Promise(
        id="contract:input:no-effect-no-entry",
        source="field report F004",
        sentence="A member that would be dropped silently, beside `body` or inside it, is refused.",
        diverges="The reference drops it.",
    ),
    Promise(
        id="contract:input:session-key",
        source="field report F010",
        sentence="A session key of more than 256 characters, blank or with control characters is refused.",
    ),
    Promise(
        id="contract:input:list-limits",
        source="field report F104",
        sentence="A list limit is a whole number from 0 to 200, also inside `query`.",
    ),
    Promise(
        id="contract:violations:bounded",
        source="runtime page §5",
        sentence="At most 16 violations are told, each one line of bounded length.",
    ),
    Promise(
        id="contract:violations:no-values",
        source="design D19",
        sentence="A violation names the place and the rule and never repeats a value.",
    ),
    Promise(
        id="contract:catalog:tenants",
        source="design D18, HTTP page §3.6",
        sentence="An endpoint bound to a tenant exists for that tenant only; one without a tenant exists for everyone.",
    ),
    Promise(
        id="contract:catalog:search",
        source="HTTP page §8",
        sentence="The text filter finds any part of id, name and description, whatever the letter case.",
    ),
    Promise(
        id="contract:catalog:paging",
        source="HTTP page §5.1, §8",
        sentence="Pages are ordered by id, hold at most 200 entries and together hold each match once; next_cursor is "
        "always there.",
    ),
    Promise(
        id="contract:catalog:bad-cursor",
        source="HTTP page §8",
        sentence="A cursor of another revision is stale, and one that can't be read is an invalid query.",
    ),
    Promise(
        id="contract:catalog:revision",
        source="HTTP page §8",
        sentence="The revision changes with what is published and only with it.",
    ),
    Promise(
        id="contract:catalog:revision-per-tenant",
        source="design D18, HTTP page §8",
        sentence="Revision and cursor depend on what the tenant sees alone: a change for another one shows in neither.",
    ),
    Promise(
        id="contract:catalog:near-misses",
        source="field report F008, issue 2",
        sentence="An id in another letter case or with the family placeholder leads to the qualified ids that the "
        "caller may use.",
    ),
    Promise(
        id="contract:catalog:scale",
        source="connector contract §21",
        sentence="A thousand endpoints share schemas, validators and contracts.",
    ),
    Promise(
        id="contract:manifest:without-bearer",
        source="design D24",
        sentence="Without a tenant the manifest shows the server and no capability of any endpoint.",
        diverges="The reference shows everything to everybody.",
    ),
    Promise(
        id="contract:manifest:no-origins",
        source="design D24, connector contract §24.16",
        sentence="The manifest names a tenant's own endpoints and no address of any.",
        diverges="The reference publishes base_url.",
    ),
    Promise(
        id="contract:manifest:filter",
        source="HTTP page §12",
        sentence="The manifest's filters narrow its capabilities.",
    ),
)
