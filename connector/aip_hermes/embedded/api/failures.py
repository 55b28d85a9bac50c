"""Which failure is which answer; the same on JSON routes and inside streams."""

from __future__ import annotations

import structlog
from starlette.responses import Response

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent import HistoryUnreadable, ModelFailed, ReplyNotStored, TooManyTurns, TurnInProgress
from aip_hermes.embedded.agent.runs import UnknownRun
from aip_hermes.embedded.api.answers import Refusal, plain_failure
from aip_hermes.embedded.session_db import SessionExists, TitleRefused, UnknownSession
from aip_hermes.hermes_api import HermesCode

__all__ = ["failure_answer", "failure_refusal"]

log = structlog.get_logger(__name__)


def failure_answer(exc: Exception) -> Response:
    """Return the answer to a request that failed; a plain 500 for what nobody foresaw."""
    refusal = failure_refusal(exc)
    return plain_failure() if refusal is None else refusal.answer


def failure_refusal(exc: Exception) -> Refusal | None:
    """Return status, text and code of a failure; None, after logging it, for what nobody foresaw."""
    match exc:
        case Refusal():
            return exc
        case UnknownSession():
            return Refusal(404, f"Session not found: {exc.session_id}", code=HermesCode.SESSION_NOT_FOUND)
        case SessionExists():
            return Refusal(409, str(exc), code=HermesCode.SESSION_EXISTS)
        case TitleRefused():
            return Refusal(400, str(exc), code=HermesCode.INVALID_TITLE)
        case UnknownRun():
            return Refusal(404, str(exc), code=HermesCode.RUN_NOT_FOUND)
        case TurnInProgress():
            return Refusal(409, "A turn of this session is running", code=HermesCode.TURN_IN_PROGRESS)
        case TooManyTurns():
            code = HermesCode.RATE_LIMIT_EXCEEDED
            return Refusal(429, "Too many concurrent runs", code=code, headers={"Retry-After": "1"})
        case ModelFailed():
            return Refusal(502, f"Model failed: {exc}", code=HermesCode.MODEL_FAILED)
        case ReplyNotStored():
            return Refusal(500, "The reply could not be stored", code=HermesCode.REPLY_NOT_STORED)
        case StoreFailure() | HistoryUnreadable():
            log.warning("embedded.store_unavailable", cause=type(exc).__name__, reason=str(exc))
            return Refusal(503, "Session database unavailable", code=HermesCode.SESSION_DB_UNAVAILABLE)
        case _:
            log.error("embedded.unforeseen", exc_info=exc)
            return None
