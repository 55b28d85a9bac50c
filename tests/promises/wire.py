"""What the room `wire` promises."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

PROMISES = (
    Promise(
        id="wire:objects:schema",
        source="issue 2, Must hold; wire model §6, §7",
        sentence="Every wire object validates against its hand-written schema, and what the schema refuses is refused.",
    ),
    Promise(
        id="wire:objects:round-trip",
        source="wire model §1.5",
        sentence="An object that was read is written again byte for byte, members in their published order.",
    ),
    Promise(
        id="wire:objects:presence",
        source="wire model §1.1",
        sentence="Missing and null members are accepted exactly where the presence codes allow them.",
    ),
    Promise(
        id="wire:objects:unknown-members",
        source="wire model §1.3",
        sentence="Unknown members are refused by a server, ignored in a reply that a client reads, kept in a binding.",
    ),
    Promise(
        id="wire:objects:strict-types",
        source="wire model §1.2",
        sentence="Integers and booleans are never read from text or fractions, and integers stay within 64 or 32 bits.",
    ),
    Promise(
        id="wire:objects:rules",
        source="wire model §9.1",
        sentence="An object that breaks a protocol rule is refused, and told apart from one that does not decode.",
    ),
    Promise(
        id="wire:objects:no-echo",
        source="design D19",
        sentence="A refusal names places and rules and never repeats a value.",
    ),
    Promise(
        id="wire:envelope:registry",
        source="wire model §4.2",
        sentence="All 58 body keys are known with their message types; a body has exactly one of them.",
    ),
    Promise(
        id="wire:envelope:bytes",
        source="wire model §4.1; HTTP and CLI §2, §15",
        sentence="The envelopes that a server sends have exactly the published bytes.",
    ),
    Promise(
        id="wire:times:rfc3339",
        source="wire model §1.4",
        sentence="Times are written in UTC with a trimmed fraction; read in any form of RFC 3339, their text is kept.",
    ),
    Promise(
        id="wire:canonical:bytes",
        source="wire model §8.1; connector host §2.2",
        sentence="Canonical JSON is one spelling per value: sorted, compact, numbers as the reference writes them.",
    ),
    Promise(
        id="wire:receipts:chain",
        source="wire model §8.2",
        sentence="A receipt chain hashes every entry with its predecessor, and any change to it is found.",
    ),
    Promise(
        id="wire:json:strict-reader",
        source="issue 2, aipctl; design D21",
        sentence="Repeated members, NaN, trailing commas, bad text and deep nesting are refused with line and column.",
    ),
    Promise(
        id="wire:errors:from-tree",
        source="design §4 D10, D22",
        sentence="An error of the tree travels with code, category, retry advice, source and its uncertainty.",
    ),
    Promise(
        id="wire:schema:quick-agrees",
        source="issue 4, Speed",
        sentence="What the quick check of a schema lets pass, the full validator lets pass; it judges the rest.",
    ),
    Promise(
        id="wire:start:light",
        source="design §2, lazy names",
        sentence="A client's start loads no schema library and builds models at first use; a server builds all first.",
    ),
)
