"""The evidence for people: Markdown that says the same as the JSON, and nothing besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aip_hermes.client.checklist.document import Document, PointEvidence

__all__ = ["markdown"]

_MARKS = {"pass": "pass", "fail": "**FAIL**", "not_applicable": "n/a"}


def markdown(document: Document) -> str:
    """Return the rendering of a document; equal documents render equally."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    counts = Counter(point.outcome for point in document.points)
    who, program = document.deployment, document.program
    yield f"# Verification {document.run}: {document.verdict}"
    yield ""
    yield (
        f"{counts['pass']} passed, {counts['fail']} failed, {counts['not_applicable']} not applicable, of "
        f"{len(document.points)} points; {document.started_at} to {document.ended_at}."
    )
    yield ""
    yield f"- Document: `{document.sha256}`"
    yield f"- Deployment: <{who.origin}>, {_code(who.service)}, AIP {_code(who.protocol_version)}"
    yield f"- Endpoint: {_code(who.endpoint)}, {_code(who.provider)} {_code(who.provider_version)}"
    yield f"- Principals: {_code(who.principal_id)} of tenant {_code(who.tenant_id)}; reviewer {_code(who.reviewer_id)}"
    yield f"- Manifest: {_code(who.manifest_sha256)}, catalogue revision {who.catalog_revision}"
    yield f"- Program: {program.distribution} {program.version}, revision {_code(program.revision)}"
    yield f"- Program code: `{program.code_sha256}`"
    yield f"- Quirks seen: {', '.join(map(_code, document.quirks)) or 'none'}"
    yield ""
    yield "| point | what | outcome |"
    yield "|---|---|---|"
    for point in document.points:
        yield f"| {point.number} | {_cell(point.sentence)} | {_MARKS[point.outcome]} |"
    for point in document.points:
        yield from _point(point)
    yield ""
    yield "## Sessions"
    yield ""
    for each in document.cleanup:
        yield f"- `{each.session_id}`: {each.outcome}{'' if each.reason is None else f' ({each.reason})'}"
    if who.contracts:
        yield ""
        yield "## Contracts"
        yield ""
        for name, digest in sorted(who.contracts.items()):
            yield f"- `{name}`: {_code(digest)}"


def _point(point: PointEvidence) -> Iterator[str]:
    yield ""
    yield f"## {point.number}. {point.id}: {_MARKS[point.outcome]}"
    yield ""
    yield f"{point.sentence} {point.started_at} to {point.ended_at}."
    if point.reason is not None:
        yield ""
        yield f"Reason: {point.reason}"
    for title, entries in (
        ("Done", point.done),
        ("Confirmed", point.held),
        ("Seen", tuple(f"`{name}`: {_code(value)}" for name, value in sorted(point.seen.items()))),
        ("Quirks", point.quirks),
    ):
        if entries:
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"- {entry}" for entry in entries)


def _code(value: str | int | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
