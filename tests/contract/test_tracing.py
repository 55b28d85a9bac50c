"""Spans of actions: one trace with the caller's, ids only, and nothing where nobody asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aip_hermes.server.tracing import OtelSpans, trace_id_of
from tests.support.runtime_connector import ScriptedOutcomeUnknown
from tests.support.runtime_site import Site, action

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def traced(tmp_path: Path) -> tuple[Site, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Site(tmp_path, spans=OtelSpans(provider)), exporter


def tree(exporter: InMemorySpanExporter) -> list[tuple[ReadableSpan, list[str]]]:
    """Return each action's span with the names of its children, in the order in which these ended."""
    spans = exporter.get_finished_spans()
    roots = [span for span in spans if span.name == "aip.action"]
    return [(root, [s.name for s in spans if s.parent and s.parent.span_id == root.context.span_id]) for root in roots]


@pytest.mark.requirement("tracing:joined")
async def test_an_action_is_one_span_in_the_callers_trace_with_its_steps(tmp_path: Path) -> None:
    site, exporter = traced(tmp_path)
    async with site.open() as runtime:
        given = action(
            "session_chat",
            input={"session_id": "MARK-s", "message": "MARK-text"},
            idempotency_key="MARK-key",
            observability={"trace_id": TRACE},
        )
        await site.submit(runtime, given)
    [(root, steps)] = tree(exporter)
    assert steps == ["aip.prepare", "aip.send", "aip.confirm", "aip.settle"]
    assert f"{root.context.trace_id:032x}" == TRACE
    assert dict(root.attributes or {}) == {
        "aip.action_id": given.id,
        "aip.capability_id": given.capability_id,
        "aip.attempt": 1,
        "aip.trace_id": TRACE,
        "aip.status": "completed",
    }
    assert "MARK" not in " ".join(span.to_json() for span in exporter.get_finished_spans())


@pytest.mark.requirement("tracing:joined")
async def test_a_failure_is_its_code_and_never_its_text(tmp_path: Path) -> None:
    site, exporter = traced(tmp_path)
    site.connector.failures["send"] = ScriptedOutcomeUnknown("MARK-message", uncertain=True)
    async with site.open() as runtime:
        await site.submit(runtime, action(idempotency_key="K", observability={"trace_id": "MARK trace\n"}))
        site.connector.failures["send"] = RuntimeError("MARK-broken")
        await site.submit(runtime, action("session_get"))
    (failed, _), (broken, steps) = tree(exporter)
    assert (failed.attributes or {})["aip.error_code"] == "connector.scripted.outcome_unknown"
    assert (broken.attributes or {})["aip.status"] == "failed"
    assert steps[-1] == "aip.settle"
    said = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert "MARK" not in said
    assert all(not span.events for span in exporter.get_finished_spans())


TRACES = [
    (TRACE, TRACE),
    (TRACE.upper(), TRACE),
    ("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", TRACE),
    ("order-17", None),
    ("0" * 32, None),
    ("\ud800", None),
]


@pytest.mark.requirement("tracing:joined")
@pytest.mark.parametrize(("text", "expected"), TRACES)
def test_equal_trace_ids_meet_in_one_trace(text: str, expected: str | None) -> None:
    found = trace_id_of(text)
    assert 0 < found < 2**128
    assert found == trace_id_of(text)
    assert expected is None or f"{found:032x}" == expected


_LOADED = """
import sys
import aip_hermes.app, aip_hermes.cli.aip_hermes
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""

_MISSING = """
import sys
sys.modules["opentelemetry"] = None
from dataclasses import replace
from aip_hermes.app import CannotServe, build_app
from aip_hermes.settings import Settings
try:
    build_app(Settings.load(sys.argv[1]))
except CannotServe as refused:
    assert "aip-hermes-connector[otel]" in str(refused)
    sys.exit(7)
"""


@pytest.mark.requirement("tracing:optional")
def test_nothing_is_imported_where_nobody_asked_and_a_missing_package_is_a_sentence(tmp_path: Path) -> None:
    loaded = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    from tests.support.server_serving import written_settings

    settings = written_settings(tmp_path)
    text = settings.path.read_text(encoding="utf-8").replace("enabled = false", "enabled = true")
    settings.path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", _MISSING, str(settings.path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 7, refused.stderr
