"""Liveness, readiness, models and capabilities."""

from __future__ import annotations

import asyncio
import os
import shutil
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.api.answers import JsonAnswer
from aip_hermes.embedded.api.endpoint import Endpoint

__all__ = ["API_VERSION", "OPERATIONS", "capabilities", "health", "health_detailed", "models"]

API_VERSION: Final = "0.19.0"
"""The release of hermes-agent whose HTTP API this endpoint speaks."""

_PLATFORM: Final = "hermes-agent"
OPERATIONS: Final = {
    "health": ("GET", "/health"),
    "health_detailed": ("GET", "/health/detailed"),
    "models": ("GET", "/v1/models"),
    "chat_completions": ("POST", "/v1/chat/completions"),
    "responses": ("POST", "/v1/responses"),
    "runs": ("POST", "/v1/runs"),
    "run_status": ("GET", "/v1/runs/{run_id}"),
    "run_events": ("GET", "/v1/runs/{run_id}/events"),
    "run_approval": ("POST", "/v1/runs/{run_id}/approval"),
    "run_stop": ("POST", "/v1/runs/{run_id}/stop"),
    "skills": ("GET", "/v1/skills"),
    "toolsets": ("GET", "/v1/toolsets"),
    "sessions": ("GET", "/api/sessions"),
    "session_create": ("POST", "/api/sessions"),
    "session": ("GET", "/api/sessions/{session_id}"),
    "session_update": ("PATCH", "/api/sessions/{session_id}"),
    "session_delete": ("DELETE", "/api/sessions/{session_id}"),
    "session_messages": ("GET", "/api/sessions/{session_id}/messages"),
    "session_fork": ("POST", "/api/sessions/{session_id}/fork"),
    "session_chat": ("POST", "/api/sessions/{session_id}/chat"),
    "session_chat_stream": ("POST", "/api/sessions/{session_id}/chat/stream"),
    "jobs": ("GET", "/api/jobs"),
    "job_create": ("POST", "/api/jobs"),
    "job": ("GET", "/api/jobs/{job_id}"),
    "job_update": ("PATCH", "/api/jobs/{job_id}"),
    "job_delete": ("DELETE", "/api/jobs/{job_id}"),
    "job_pause": ("POST", "/api/jobs/{job_id}/pause"),
    "job_resume": ("POST", "/api/jobs/{job_id}/resume"),
    "job_run": ("POST", "/api/jobs/{job_id}/run"),
    "response": ("GET", "/v1/responses/{response_id}"),
    "response_delete": ("DELETE", "/v1/responses/{response_id}"),
}
_NOT_HERE: Final = frozenset({"admin_config_rw", "memory_write_api", "audio_api", "realtime_voice", "cors"})
_FEATURES: Final = (
    "chat_completions", "chat_completions_streaming", "responses_api", "responses_streaming", "run_submission",
    "run_status", "run_events_sse", "run_stop", "run_approval_response", "tool_progress_events", "approval_events",
    "session_resources", "session_chat", "session_chat_streaming", "session_fork", "admin_config_rw", "jobs_admin",
    "memory_write_api", "skills_api", "audio_api", "realtime_voice", "cors",
)  # fmt: skip


async def health(_endpoint: Endpoint, _request: Request) -> Response:
    """Alive; says nothing of the store."""
    return JsonAnswer({"status": "ok", "platform": _PLATFORM, "version": API_VERSION})


async def health_detailed(endpoint: Endpoint, _request: Request) -> Response:
    """Readiness, check by check; always 200."""
    checks: dict[str, dict[str, Any]] = {
        "state_db": await _store_check(endpoint),
        "model": {"status": "ok", "name": endpoint.model_name},
        "disk": await asyncio.to_thread(_disk_check, endpoint),
        "gateway": {"status": "ok", "state": "running"},
        "background_queues": {"status": "ok", "active_turns": endpoint.turns.active},
    }
    status = "ok" if all(check["status"] == "ok" for check in checks.values()) else "degraded"
    active = endpoint.turns.active
    return JsonAnswer(
        {
            "status": status,
            "readiness": {"status": status, "checks": checks},
            "platform": _PLATFORM,
            "version": API_VERSION,
            "implementation": "aip-hermes-connector embedded",
            "gateway_state": "running",
            "platforms": {"api_server": {"state": "connected", "error_code": None, "error_message": None}},
            "active_agents": active,
            "gateway_busy": active > 0,
            "gateway_drainable": active == 0,
            "exit_reason": None,
            "updated_at": datetime.fromtimestamp(endpoint.clock.now_ms() / 1000, UTC).isoformat(),
            "pid": os.getpid(),
        }
    )


async def models(endpoint: Endpoint, _request: Request) -> Response:
    """The one advertised model."""
    entry = {
        "id": endpoint.model_name,
        "object": "model",
        "created": endpoint.started_at_ms // 1000,
        "owned_by": "hermes",
        "permission": [],
        "root": endpoint.model_name,
        "parent": None,
    }
    return JsonAnswer({"object": "list", "data": [entry]})


async def capabilities(endpoint: Endpoint, _request: Request) -> Response:
    """What this endpoint can do; only what is here is marked true."""
    features: dict[str, Any] = {name: name not in _NOT_HERE for name in _FEATURES}
    features["session_continuity_header"] = "X-Hermes-Session-Id"
    features["session_key_header"] = "X-Hermes-Session-Key"
    return JsonAnswer(
        {
            "object": "hermes.api_server.capabilities",
            "platform": _PLATFORM,
            "model": endpoint.model_name,
            "auth": {"type": "bearer", "required": True},
            "runtime": {
                "mode": "embedded",
                "tool_execution": "server",
                "split_runtime": False,
                "description": "The endpoint embedded in aip-hermes-connector: sessions, turns, runs and jobs; "
                "its one tool notes commands and runs none, its jobs don't fire.",
            },
            "features": features,
            "endpoints": {name: {"method": method, "path": path} for name, (method, path) in OPERATIONS.items()},
        }
    )


async def _store_check(endpoint: Endpoint) -> dict[str, Any]:
    try:
        await endpoint.db.list_sessions_rich(limit=1, include_children=True, compact_rows=True)
    except StoreFailure as exc:
        return {"status": "unavailable", "cause": type(exc).__name__}
    return {"status": "ok"}


def _disk_check(endpoint: Endpoint) -> dict[str, Any]:
    try:
        usage = shutil.disk_usage(endpoint.db.path.parent)
    except OSError as exc:
        return {"status": "unavailable", "cause": type(exc).__name__}
    return {"status": "ok", "used_percent": round(100 * usage.used / usage.total, 1), "free_bytes": usage.free}
