"""The checklist with each fault met once: it never says pass for what it did not see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aip_hermes.client.checklist import Document, markdown, problems_of
from aip_hermes.embedded.faults import FAULTS
from aip_hermes.embedded.faults.exchange import LATE_S, LOCKED_S
from aip_hermes.ports import SystemClock
from tests.support.checklist_evidence import verified
from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import lifecycle_site

POINT_OF = {
    "session_create": "create",
    "session_chat": "turn",
    "session_update": "change",
    "session_fork": "fork",
    "session_delete": "delete-confirmed",
}
"""Operation → the point that sends it first."""

HIDES = ("lost-answer", "reset-mid-body", "html-502", "late-answer", "late-effect", "locked-database")
"""Faults that hide or delay what was carried out: a run meets one of them at each operation."""
COMPRESSES = ("compress", "compress-in-place")
NOTHING_HAPPENS = (
    ("lost-request", "session_create"),
    ("lost-request", "session_chat"),
    ("lost-request", "session_delete"),
    ("refused-database", "session_update"),
)
"""What these faults meet is not carried out at all."""
OF_STREAMS = ("stalled-stream", "no-terminal-event")
"""The checklist streams nothing."""


class ShortClock(SystemClock):
    """What is late here comes as soon as it can."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0.05 if seconds in (LATE_S, LOCKED_S) else seconds)


async def played(folder: Path, *faults: str) -> Document:
    """Return the document of a run, once it is sure that it is valid and names what is left."""
    async with lifecycle_site(folder, model=RecordingModel(), faults=faults, hermes_clock=ShortClock()) as site:
        document = await verified(site)
        assert {each.session_id for each in document.cleanup if each.outcome == "left"} == set(await site.rows())
    assert problems_of(json.dumps(document.json_value()), rendering=markdown(document)) == []
    return document


def outcome_of(document: Document, point: str) -> str:
    return next(each.outcome for each in document.points if each.id == point)


@pytest.mark.requirement("checklist:faults")
def test_each_fault_has_its_place() -> None:
    named = {*HIDES, *COMPRESSES, *OF_STREAMS, *(fault for fault, _ in NOTHING_HAPPENS)}
    assert named == set(FAULTS)


@pytest.mark.requirement("checklist:faults", "checklist:cleans-up")
@pytest.mark.parametrize("fault", HIDES)
async def test_what_only_the_answer_hid_passes_by_what_reads_show(tmp_path: Path, fault: str) -> None:
    document = await played(tmp_path, *(f"{fault}:{operation}:1" for operation in POINT_OF))
    assert [each.id for each in document.points if each.outcome != "pass"] == []


@pytest.mark.requirement("checklist:faults", "checklist:cleans-up")
@pytest.mark.parametrize("fault", COMPRESSES)
async def test_a_compression_of_a_turn_is_no_failure(tmp_path: Path, fault: str) -> None:
    document = await played(tmp_path, f"{fault}:session_chat:1")
    assert [each.id for each in document.points if each.outcome != "pass"] == []


@pytest.mark.requirement("checklist:faults", "checklist:cleans-up")
@pytest.mark.parametrize(("fault", "operation"), NOTHING_HAPPENS)
async def test_no_point_passes_whose_effect_was_not_there(tmp_path: Path, fault: str, operation: str) -> None:
    document = await played(tmp_path, f"{fault}:{operation}:1")
    assert (outcome_of(document, POINT_OF[operation]), document.verdict) == ("fail", "fail")


@pytest.mark.requirement("checklist:faults")
async def test_no_point_passes_whose_reads_failed(tmp_path: Path) -> None:
    """A hundred in a row: no try of a safe read gets through."""
    document = await played(tmp_path, "html-502:session_messages:100")
    assert (outcome_of(document, "turn"), outcome_of(document, "transcript")) == ("fail", "not_applicable")
