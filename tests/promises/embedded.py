"""What the embedded Hermes endpoint and the rules it shares with its callers promise."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_API = "API server §"
_SESSIONS = "Sessions §"

PROMISES = (
    Promise(
        id="hermes_api:session:whitelist",
        source=_API + "3.1",
        sentence="A session object has exactly 21 members; the prompt and the model configuration are only flagged.",
    ),
    Promise(
        id="hermes_api:message:whitelist",
        source=_API + "3.7",
        sentence="A message object has exactly 12 members.",
    ),
    Promise(
        id="hermes_api:session-id:rules",
        source="design D12; " + _API + "3.3",
        sentence="New session ids are 1–256 characters after trimming; no control characters, `..`, slash or drive.",
    ),
    Promise(
        id="hermes_api:title:cleaning",
        source=_API + "5.1; " + _SESSIONS + "5.4; field report F089",
        sentence="Titles are cleaned before they are measured; 100 code points pass, 101 don't.",
    ),
    Promise(
        id="hermes_api:title:lineage",
        source=_SESSIONS + "5.4",
        sentence="A lineage is numbered from ` #2`, one above the highest number in use.",
    ),
    Promise(
        id="hermes_api:error:bodies",
        source=_API + "2.1",
        sentence="Error bodies have the documented shapes: four members, three for a bad key, two for a bad header.",
    ),
    Promise(
        id="embedded:store:lazy",
        source="Sessions §3, §16.1",
        sentence="The constructor touches nothing; the first operation opens; closing twice is fine, use afterwards "
        "is a RuntimeError.",
    ),
    Promise(
        id="embedded:store:exact-text",
        source="Sessions §2.2; field report F043",
        sentence="Stored text comes back as it was, NUL and the empty string included; lone surrogates become U+FFFD.",
    ),
    Promise(
        id="embedded:store:order",
        source="Sessions §2.3, §16.4",
        sentence="Messages are ordered by row id, also under a clock that steps back.",
    ),
    Promise(
        id="embedded:store:enrich",
        source="Sessions §5.1, §16.2",
        sentence="A second create of an id fills empty places only; an unknown parent is refused.",
    ),
    Promise(
        id="embedded:store:counters",
        source="Sessions §5.2, §16.3",
        sentence="Counters of a row are exact under concurrent writers.",
    ),
    Promise(
        id="embedded:store:foreign-file",
        source="design §6",
        sentence="A database of another program is refused and not touched.",
    ),
    Promise(
        id="embedded:store:first-reason",
        source="Sessions §5.5; design §7; field report F086",
        sentence="The first end reason wins.",
    ),
    Promise(
        id="embedded:store:titles",
        source="Sessions §5.4; field report F088",
        sentence="A title is unique, case-sensitively; the refusal names its holder; a compressed ancestor hands its "
        "title over.",
    ),
    Promise(
        id="embedded:store:tip",
        source="Sessions §6, §14",
        sentence="Resuming finds the compression tip from every member of a chain, and never a branch.",
    ),
    Promise(
        id="embedded:store:delete",
        source="Sessions §5.7; field reports F094, F095, F098",
        sentence="A delete takes messages and subagents' rows; every other child stays without a parent, listed and "
        "deletable.",
    ),
    Promise(
        id="embedded:store:closed-by-compression",
        source="Sessions §14",
        sentence="Appending to a row that a compression ended is refused, naming the tip.",
    ),
    Promise(
        id="embedded:conversation:repair",
        source="Sessions §7",
        sentence="Sequences that no model accepts are repaired for the request only; rows stay.",
    ),
    Promise(
        id="embedded:api:key",
        source="API server §1.3",
        sentence="Everything but liveness wants the key; a wrong one is 401 with three members, before any row is "
        "looked at.",
    ),
    Promise(
        id="embedded:api:unrouted",
        source="API server §1.1",
        sentence="Unknown paths are 404 and other methods, HEAD included, 405, as plain text and before the key.",
    ),
    Promise(
        id="embedded:api:browsers",
        source="API server §1.5",
        sentence="A request with an Origin, and any OPTIONS, gets an empty 403.",
    ),
    Promise(
        id="embedded:api:body",
        source="API server §1.6, §2.2",
        sentence="A body over 10,000,000 bytes is 413 before the key; bad JSON and a body that is no object are 400 "
        "without a code.",
    ),
    Promise(
        id="embedded:api:raw-path",
        source="API server §3.4; design D12; field report F007",
        sentence="Ids in paths are percent-decoded once, an encoded slash included; every stored id can be read.",
    ),
    Promise(
        id="embedded:create:atomic",
        source="API server §3.3; field report F059",
        sentence="Of twenty creates of one id exactly one gets it, of one title likewise; a refused one leaves no row.",
    ),
    Promise(
        id="embedded:create:ids",
        source="API server §3.3",
        sentence="Create refuses unsafe ids with invalid_session_id, trims the others and makes one where none is "
        "given.",
    ),
    Promise(
        id="embedded:create:titles",
        source="design §7; Sessions §15; field report F089",
        sentence="A title over 100 characters after cleaning is 400 invalid_title on create, change and fork; nothing "
        "is stored.",
    ),
    Promise(
        id="embedded:create:prompt",
        source="API server §3.1; field report F091",
        sentence="A system prompt is stored and flagged, never shown and never used for a turn.",
    ),
    Promise(
        id="embedded:store:unavailable-means-nothing-done",
        source="design §7, D11",
        sentence="A 503 session_db_unavailable of a route that writes has changed nothing, wherever the store left.",
    ),
    Promise(
        id="embedded:store:possible-counts",
        source="design §7",
        sentence="A model that reports impossible counts of tokens loses neither its reply nor the counts before.",
    ),
    Promise(
        id="embedded:list:page",
        source="API server §3.2",
        sentence="Lists are ordered by last activity, with preview and last_active; has_more says that the page is "
        "full.",
    ),
    Promise(
        id="embedded:list:projection",
        source="Sessions §5.6",
        sentence="A compressed root is listed as its continuation, with its own id as lineage root.",
    ),
    Promise(
        id="embedded:messages:pages",
        source="field report F103",
        sentence="Messages are read in pages by `limit` and `offset`, with total and has_more; without either, whole.",
        diverges="0.19.0 reads neither and always answers the whole transcript.",
    ),
    Promise(
        id="embedded:change:rules",
        source="API server §3.5; field report F092",
        sentence="A change takes title and end reason only, both in one transaction; a bad title stops the end "
        "reason; the first reason wins with 200.",
    ),
    Promise(
        id="embedded:delete:answer",
        source="API server §3.6",
        sentence="A delete answers deleted true, again 404.",
    ),
    Promise(
        id="embedded:delete:during-turn",
        source="design §7; field report F097",
        sentence="A delete during a turn is 409 turn_in_progress and changes nothing; a row deleted before its turn "
        "stays gone.",
    ),
    Promise(
        id="embedded:fork:atomic",
        source="design §7; Sessions §16.8; field report F059",
        sentence="A fork is one transaction: a bad id or title changes nothing, and of five forks to one id one "
        "succeeds.",
    ),
    Promise(
        id="embedded:fork:separate",
        source="design §7; field report F002",
        sentence="After a fork the messages of the source still answer the source, and the fork is listed also under "
        "a closed source.",
    ),
    Promise(
        id="embedded:fork:ids",
        source="design §7",
        sentence="A fork applies the id rules of create.",
    ),
    Promise(
        id="embedded:fork:title",
        source="API server §3.8",
        sentence="A fork without a title takes the next of the lineage; a blank one means none.",
    ),
    Promise(
        id="embedded:quirk:fork-not-atomic",
        source="API server §3.8; design §7",
        sentence="With quirk fork-not-atomic a bad title leaves the source ended and an untitled child with all "
        "messages.",
    ),
    Promise(
        id="embedded:quirk:fork-child-resolves",
        source="API server §5.3; design §7",
        sentence="With quirk fork-child-resolves the messages of a source are answered by its newest child.",
    ),
    Promise(
        id="embedded:quirk:names",
        source="design §7",
        sentence="An unknown quirk is refused with the list of those that exist.",
    ),
    Promise(
        id="embedded:turn:answer",
        source="API server §4.1",
        sentence="A turn answers effective id, final text and the usage of this turn; the id is also a header.",
    ),
    Promise(
        id="embedded:turn:rows",
        source="API server §3.7; Sessions §12",
        sentence="A turn appends a user row and an assistant row with finish reason and token count, and counts on "
        "the row.",
    ),
    Promise(
        id="embedded:turn:history",
        source="API server §4.4; field report F029",
        sentence="The model reads the stored history, this turn's message and this turn's system message; only new "
        "rows are stored.",
    ),
    Promise(
        id="embedded:turn:order",
        source="design §7; field report F055",
        sentence="Parallel turns of one session run one after the other and see n, n+2, n+4 messages; rows alternate.",
    ),
    Promise(
        id="embedded:turn:tip",
        source="design §7; field report F001",
        sentence="A turn on a compressed id runs on its tip, is stored there and names it.",
    ),
    Promise(
        id="embedded:turn:closed",
        source="API server §4.6",
        sentence="A closed row takes turns and stays closed with its first reason.",
    ),
    Promise(
        id="embedded:turn:model-failed",
        source="design §7; field report F082",
        sentence="A failed model is 502 model_failed with the user row kept; the next turn works.",
    ),
    Promise(
        id="embedded:turn:history-unreadable",
        source="design §7; field report F085",
        sentence="An unreadable history is 503 session_db_unavailable; no model is asked and nothing is appended.",
    ),
    Promise(
        id="embedded:turn:reply-not-stored",
        source="design §7",
        sentence="A reply that could not be stored is 500 reply_not_stored with the user row kept.",
    ),
    Promise(
        id="embedded:turn:caller-leaves",
        source="API server §8.3",
        sentence="A turn whose caller leaves runs to its end and is stored.",
    ),
    Promise(
        id="embedded:turn:shutdown",
        source="API server §8.4; field report F041",
        sentence="A server that ends stops its running turns within seconds; their user rows stay.",
    ),
    Promise(
        id="embedded:turn:durable",
        source="Sessions §16.14; API server §5.6",
        sentence="The user row is on disk before the model is asked: it survives SIGKILL during the call.",
    ),
    Promise(
        id="embedded:turn:input",
        source="API server §4.1",
        sentence="Messages are texts or lists of text and image parts; each other form is 400 with its code.",
    ),
    Promise(
        id="embedded:turn:session-key",
        source="API server §1.4; field report F010",
        sentence="A memory scope over 256 characters is 400 without a code, another one is echoed and not stored.",
    ),
    Promise(
        id="embedded:store:unavailable",
        source="API server §2.2; field report F031",
        sentence="A store that can't be opened is 503 session_db_unavailable on every session route; health still "
        "answers.",
    ),
    Promise(
        id="embedded:health:prompt",
        source="field report F040",
        sentence="Health answers promptly while a large transcript is read.",
    ),
    Promise(
        id="embedded:reads:shapes",
        source="API server §6.1",
        sentence="Health, models and capabilities have the documented shapes; only what runs is marked true.",
    ),
    Promise(
        id="embedded:listen:strength",
        source="design §7; field report F076",
        sentence="Keys under 16 characters and placeholders are refused.",
    ),
    Promise(
        id="embedded:model:offline",
        source="design §7",
        sentence="The offline model is deterministic, needs no key and answers from the transcript.",
    ),
    Promise(
        id="embedded:model:openai",
        source="design §7",
        sentence="Any OpenAI-compatible endpoint answers; each failure of it is ModelFailed without key, address or "
        "text.",
    ),
    Promise(
        id="embedded:open:folder",
        source="design §6",
        sentence="An endpoint owns its folder: a second one is refused and names the holder.",
    ),
)
