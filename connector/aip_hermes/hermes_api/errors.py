"""Error codes of a Hermes endpoint and the shapes of its error bodies."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

__all__ = ["HermesCode", "error_body", "header_error_body", "unauthorized_body"]


class HermesCode(StrEnum):
    """`error.code` of all routes. Status and code classify an answer; `error.type` says nothing."""

    INVALID_API_KEY = "invalid_api_key"
    BODY_TOO_LARGE = "body_too_large"
    INVALID_SESSION_ID = "invalid_session_id"
    INVALID_SYSTEM_PROMPT = "invalid_system_prompt"
    INVALID_TITLE = "invalid_title"
    UNSUPPORTED_SESSION_FIELD = "unsupported_session_field"
    MISSING_MESSAGE = "missing_message"
    INVALID_SYSTEM_MESSAGE = "invalid_system_message"
    UNSUPPORTED_CONTENT_TYPE = "unsupported_content_type"
    INVALID_IMAGE_URL = "invalid_image_url"
    INVALID_CONTENT_PART = "invalid_content_part"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_EXISTS = "session_exists"
    RUN_NOT_FOUND = "run_not_found"
    INVALID_APPROVAL_CHOICE = "invalid_approval_choice"
    APPROVAL_NOT_ACTIVE = "approval_not_active"
    APPROVAL_NOT_PENDING = "approval_not_pending"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    SESSION_DB_UNAVAILABLE = "session_db_unavailable"
    GATEWAY_DRAINING = "gateway_draining"
    MODEL_FAILED = "model_failed"
    """The model gave no reply; the user row of the turn is kept. Embedded endpoint only, 502."""
    REPLY_NOT_STORED = "reply_not_stored"
    """The model replied and the reply could not be stored. Embedded endpoint only, 500."""
    TURN_IN_PROGRESS = "turn_in_progress"
    """A turn of the session runs; nothing was changed. Embedded endpoint only, 409."""


def error_body(
    message: str, *, code: HermesCode | None = None, param: str | None = None, type: str = "invalid_request_error"
) -> dict[str, Any]:
    """Return the usual body. `code` is null for bad JSON and a body that is no object; `param` names a message part."""
    return {"error": {"message": message, "type": type, "param": param, "code": None if code is None else code.value}}


def unauthorized_body() -> dict[str, Any]:
    """Return the body of a 401: three members, whatever was wrong with the key."""
    return {
        "error": {
            "message": "Invalid API key",
            "type": "invalid_request_error",
            "code": HermesCode.INVALID_API_KEY.value,
        }
    }


def header_error_body(message: str) -> dict[str, Any]:
    """Return the body for a bad session header: two members, no code."""
    return {"error": {"message": message, "type": "invalid_request_error"}}
