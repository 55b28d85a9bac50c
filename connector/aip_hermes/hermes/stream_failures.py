"""What may go wrong with a stream of events, as failures for the caller.

A stream that breaks off says nothing about a mutation: the turn may run on. Source: connector contract §12, §24.19;
design D17; field reports F050, F052.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.answer import Asked, clean_text
from aip_hermes.hermes.failures import (
    HermesFailed,
    InvalidResponse,
    NotAStream,
    StreamFailed,
    StreamIncomplete,
    StreamPublication,
    StreamTruncated,
)
from aip_hermes.hermes.stream import StreamCollector
from aip_hermes.hermes.wording import step_after
from aip_hermes.sse import SseError, SseLimit

__all__ = ["ended_badly", "is_event_stream", "not_a_stream", "publication_failed", "unreadable"]


def is_event_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Tell whether an answer is a stream of events that can be read as it comes."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = headers.get("content-encoding", "identity").strip().lower()
    return status == 200 and media_type == "text/event-stream" and encoding in ("", "identity")


def not_a_stream(asked: Asked, status: int, headers: Mapping[str, str]) -> HermesFailed:
    """Return the failure of a success that is something else, a proxy's page or an older release's JSON."""
    media_type = clean_text(asked, headers.get("content-type", "").partition(";")[0].strip()) or "nothing"
    return NotAStream(
        f"{asked.subject.said} answered HTTP {status} with {media_type} instead of a stream of events. {_step(asked)}",
        details={**asked.subject.ids, "media_type": media_type},
        **_place(asked, status),
    )


def unreadable(asked: Asked, status: int, error: SseError) -> HermesFailed:
    """Return the failure of a stream whose bytes can't be read on."""
    what = f"more bytes or events than the limit of its {error.limit}" if isinstance(error, SseLimit) else "no UTF-8"
    return InvalidResponse(
        f"{asked.subject.said} sent a stream with {what}. {_step(asked)}",
        details={
            **asked.subject.ids,
            "reason": f"sse_{error.limit}" if isinstance(error, SseLimit) else "sse_malformed",
        },
        **_place(asked, status),
    )


def publication_failed(asked: Asked, status: int, error: ActionFailed) -> HermesFailed:
    """Return the failure of a stream that was left because a chunk could not be stored."""
    return StreamPublication(
        f"{asked.subject.said} went on, but what it sent could not be stored, so its stream was left. {_step(asked)}",
        details={**asked.subject.ids, "reason": error.code},
        **_place(asked, status),
    )


def ended_badly(asked: Asked, status: int, collector: StreamCollector) -> HermesFailed | None:
    """Return the failure that the end of a stream means; None for an end that is none."""
    said, place = asked.subject.said, _place(asked, status)
    match collector.ending:
        case "truncated":
            return StreamTruncated(
                f"{said} had not ended its stream after {collector.count} events, all that `max_events` allows."
                f" {_step(asked)}",
                details={**asked.subject.ids, "max_events": collector.count},
                **place,
            )
        case "incomplete":
            return StreamIncomplete(
                f"{said} closed its stream without an event that ends it. {_step(asked)}",
                details=asked.subject.ids,
                **place,
            )
        case "failed":
            message = _message(asked, collector.failure)
            place["provider"] |= {"message": message}
            return StreamFailed(
                f"{said} ended its stream by saying that the work failed. {_step(asked)}",
                details={**asked.subject.ids, "event": collector.last_name},
                **place,
            )
    return None


def _step(asked: Asked) -> str:
    if not asked.mutation:
        return "What was read is gone from the endpoint; ask for the status of the run."
    return step_after(asked.subject, uncertain=True, mutation=True)


def _place(asked: Asked, status: int) -> dict[str, Any]:
    return {
        "endpoint_id": asked.endpoint.id,
        "session_id": asked.subject.session_id,
        "provider": {"status": status, "code": None, "message": None, "retry_after_ms": None},
        "retryable": False,
        "uncertain": asked.mutation,
    }


def _message(asked: Asked, data: Mapping[str, Any]) -> str | None:
    """Return what an event that failed says for a person: bounded, without credentials and addresses."""
    response = data.get("response")
    for source in (data, response if isinstance(response, Mapping) else {}):
        for name in ("message", "error"):
            value = source.get(name)
            value = value.get("message") if isinstance(value, Mapping) else value
            if isinstance(value, str) and value.strip():
                return clean_text(asked, value)
    return None
