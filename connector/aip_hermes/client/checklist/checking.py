"""Validates an evidence document: form, hash, and that verdict, quirks and reasons follow from its points."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from aip_hermes import wire
from aip_hermes.client.checklist.document import Document, digest_of, verdict_of
from aip_hermes.client.checklist.points import POINTS
from aip_hermes.client.checklist.rendering import markdown

__all__ = ["problems_of"]

_MAX_SHOWN: Final = 10


def problems_of(text: str, *, rendering: str | None = None) -> list[str]:
    """Return what is wrong with a document, one sentence each; none for a good one.

    rendering: the Markdown that lies beside it, where there is one. The hash tells a change by accident or by who did
    not bother; it is no signature.
    """
    try:
        value: Any = wire.read_json(text)
    except ValueError as error:
        return [f"it is no JSON: {error}"]
    try:
        document = Document.model_validate_json(text)
    except ValidationError as error:
        told = [
            f"{'.'.join(map(str, each['loc'])) or 'the document'}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        ]
        return told[:_MAX_SHOWN]
    problems = []
    if digest_of(value) != document.sha256:
        problems.append("sha256: the document was changed after it was sealed")
    problems += _points(document)
    if document.verdict != verdict_of(document.points):
        problems.append("verdict: it does not follow from the points")
    quirks = tuple(sorted({quirk for point in document.points for quirk in point.quirks}))
    if document.quirks != quirks:
        problems.append("quirks: they are not those of the points")
    if rendering is not None and rendering != markdown(document):
        problems.append("the Markdown beside it says something else")
    return problems


def _points(document: Document) -> list[str]:
    problems: list[str] = []
    if [(each.number, each.id, each.sentence) for each in document.points] != [
        (row.number, row.id, row.sentence) for row in POINTS
    ]:
        problems.append(f"points: they are not the {len(POINTS)} of the checklist, in its order")
    last = wire.parse_rfc3339(document.started_at)
    for point in document.points:
        if (point.reason is None) != (point.outcome == "pass"):
            problems.append(f"point {point.number}: a pass has no reason, every other outcome has one")
        if point.outcome == "pass" and not (point.done and point.held):
            problems.append(f"point {point.number}: it passed without anything asked or confirmed")
        times = [wire.parse_rfc3339(each) for each in (point.started_at, point.ended_at, document.ended_at)]
        if [last, *times] != sorted([last, *times]):
            problems.append(f"point {point.number}: its times are out of order")
        last = times[1]
    return problems
