"""Spans of actions through OpenTelemetry's API (extra `otel`). Imported only where the settings ask for it.

One span `aip.action` per attempt, with a child per step. Its trace is the caller's `X-AIP-Trace-Id`: the same 32 hex
digits, or for another text the first 16 bytes of its SHA-256, so that equal trace ids meet in one trace. Attributes are
ids and members of closed sets. No exception is recorded: its message may quote what was sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TracerProvider

from aip_hermes.telemetry import About, Span, Step

__all__ = ["OtelSpans", "trace_id_of"]

_TRACE: Final = re.compile(r"[0-9a-f]{32}")
_NOTHING: Final = "0" * 32
_SHOWN: Final = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


class OtelSpans:
    """Spans of the process's tracer provider, or of the one given. What exports them is the operator's choice."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("aip_hermes", tracer_provider=provider)

    @contextmanager
    def attempt(self, about: About) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            "aip.action",
            context=_parent(about.trace_id),
            kind=SpanKind.SERVER,
            attributes=_attributes(about),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield _Outcome(span)

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        kind = SpanKind.CLIENT if step == "send" else SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            f"aip.{step}", kind=kind, record_exception=False, set_status_on_exception=False
        ):
            yield


class _Outcome:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def outcome(self, stored: Mapping[str, object] | None) -> None:
        status = "queued" if stored is None else str(stored.get("status", ""))
        self._span.set_attribute("aip.status", status)
        error = None if stored is None else stored.get("error")
        if isinstance(error, Mapping):
            self._span.set_attribute("aip.error_code", str(error.get("code", "")))
            self._span.set_status(Status(StatusCode.ERROR))


def trace_id_of(text: str) -> int:
    """Return the trace that a caller's trace id stands for, as OpenTelemetry numbers it; never 0."""
    lowered = text.lower().replace("-", "")
    if _TRACE.fullmatch(lowered) and lowered != _NOTHING:
        return int(lowered, 16)
    return int.from_bytes(_digest(text)[:16], "big") or 1


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _parent(trace_id: str | None) -> Context | None:
    """Return a context whose trace is the caller's; its parent span is the caller's own, which nobody here knows."""
    if trace_id is None:
        return None
    span_id = int.from_bytes(_digest(trace_id)[16:24], "big") or 1
    caller = SpanContext(
        trace_id=trace_id_of(trace_id), span_id=span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return trace.set_span_in_context(NonRecordingSpan(caller), Context())


def _attributes(about: About) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "aip.action_id": about.action_id,
        "aip.capability_id": about.capability_id,
        "aip.attempt": about.attempt,
    }
    # A caller may write anything as its trace id; what is no plain id stays out.
    if about.trace_id is not None and _SHOWN.fullmatch(about.trace_id):
        found["aip.trace_id"] = about.trace_id
    return found
