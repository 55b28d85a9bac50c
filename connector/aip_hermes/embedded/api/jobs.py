"""The job routes: made, listed, read, changed, paused, resumed, set to run now, deleted. Nothing fires them here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.api.answers import JsonAnswer, Refusal
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.requests import json_object, truthy
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.hermes_api import ScheduleRefused, next_run, parse_schedule

__all__ = ["change", "create", "delete", "listed", "pause", "read", "resume", "run_now"]

Job = dict[str, Any]

_ID = re.compile(r"[a-f0-9]{12}")
_MAX_NAME: Final = 200
_MAX_PROMPT: Final = 5000
_MAX_SCHEDULE: Final = 512
_CHANGEABLE: Final[tuple[str, ...]] = ("name", "schedule", "prompt", "deliver", "skills", "skill", "repeat", "enabled")
_INJECTION = re.compile(
    r"\b(ignore|disregard|forget)\s+(?:\w+\s+){0,3}?(previous|prior|above|earlier)\s+(?:\w+\s+)?instructions\b",
    re.IGNORECASE,
)


async def listed(endpoint: Endpoint, request: Request) -> Response:
    """GET /api/jobs: in the order in which they were made; the disabled ones only with `include_disabled`."""
    jobs = await endpoint.jobs.listed(include_disabled=truthy(request, "include_disabled"))
    return JsonAnswer({"jobs": [job | {"latest_execution": None} for job in jobs]})


async def create(endpoint: Endpoint, request: Request) -> Response:
    """POST /api/jobs: name and schedule are needed; the first moment is known at once."""
    body = await _body(request)
    name, schedule = _name(body.get("name")), _schedule(endpoint, body.get("schedule"))
    once = schedule["kind"] == "once"
    job: Job = {
        "id": endpoint.new_id("")[-12:],
        "name": name,
        "prompt": _prompt(body.get("prompt")),
        **_skills(body.get("skills")),
        "model": None,
        "provider": None,
        "provider_snapshot": None,
        "model_snapshot": endpoint.model_name,
        "base_url": None,
        "script": None,
        "no_agent": False,
        "context_from": None,
        **_scheduled(endpoint, schedule),
        "repeat": {"times": _repeat(body.get("repeat")) or (1 if once else None), "completed": 0},
        "enabled": True,
        "state": "scheduled",
        "paused_at": None,
        "paused_reason": None,
        "created_at": _now(endpoint).isoformat(),
        "last_run_at": None,
        "last_status": None,
        "last_error": None,
        "last_delivery_error": None,
        "deliver": _text(body.get("deliver"), "Deliver") or "local",
        "origin": _origin(request),
        "enabled_toolsets": None,
        "workdir": None,
    }
    await endpoint.jobs.add(job)
    return JsonAnswer({"job": job})


async def read(endpoint: Endpoint, request: Request) -> Response:
    """GET one job."""
    return _answer(await endpoint.jobs.get(_job_id(request)))


async def change(endpoint: Endpoint, request: Request) -> Response:
    """PATCH: unknown keys are dropped, none left is refused. A bad value changes nothing."""
    job_id = _job_id(request)
    body = await _body(request)
    given = {name: body[name] for name in _CHANGEABLE if name in body}
    if not given:
        raise _refused(400, "No valid fields to update")
    new = _changes(endpoint, given)
    # `enabled` means what pause and resume mean.
    switch = {True: _resumed, False: _paused}.get(given["enabled"]) if "enabled" in given else None

    def changed(job: Job) -> Job:
        if "repeat" in new:
            job["repeat"] = job["repeat"] | {"times": new["repeat"]}
        job |= {name: value for name, value in new.items() if name != "repeat"}
        return switch(endpoint, job) if switch else job

    return _answer(await endpoint.jobs.change(job_id, changed))


async def delete(endpoint: Endpoint, request: Request) -> Response:
    """DELETE one job."""
    if not await endpoint.jobs.delete(_job_id(request)):
        raise _unknown()
    return JsonAnswer({"ok": True})


async def pause(endpoint: Endpoint, request: Request) -> Response:
    """POST …/pause: disabled, with its next moment kept."""
    return await _switched(endpoint, request, _paused)


async def resume(endpoint: Endpoint, request: Request) -> Response:
    """POST …/resume: enabled again; the next moment is counted from now."""
    return await _switched(endpoint, request, _resumed)


async def run_now(endpoint: Endpoint, request: Request) -> Response:
    """POST …/run: enabled, with now as its next moment."""
    return await _switched(endpoint, request, _due)


async def _switched(endpoint: Endpoint, request: Request, switch: Callable[[Endpoint, Job], Job]) -> Response:
    return _answer(await endpoint.jobs.change(_job_id(request), lambda job: switch(endpoint, job)))


def _paused(endpoint: Endpoint, job: Job) -> Job:
    return job | {"enabled": False, "state": "paused", "paused_at": _now(endpoint).isoformat()}


def _resumed(endpoint: Endpoint, job: Job) -> Job:
    moment = next_run(job["schedule"], after=_now(endpoint))
    return job | {"enabled": True, "state": "scheduled", "paused_at": None, "next_run_at": moment}


def _due(endpoint: Endpoint, job: Job) -> Job:
    return job | {
        "enabled": True,
        "state": "scheduled",
        "paused_at": None,
        "next_run_at": _now(endpoint).isoformat(),
    }


def _changes(endpoint: Endpoint, given: Mapping[str, Any]) -> Job:
    new: Job = {}
    if "name" in given:
        new["name"] = _name(given["name"])
    if "schedule" in given:
        new |= _scheduled(endpoint, _schedule(endpoint, given["schedule"]))
    if "prompt" in given:
        new["prompt"] = _prompt(given["prompt"])
    if "deliver" in given:
        new["deliver"] = _text(given["deliver"], "Deliver") or "local"
    if "skills" in given or "skill" in given:
        new |= _skills(given.get("skills", given.get("skill")))
    if "repeat" in given:
        new["repeat"] = _repeat(given["repeat"])
    if "enabled" in given and not isinstance(given["enabled"], bool):
        raise _refused(400, "Enabled must be true or false")
    return new


def _scheduled(endpoint: Endpoint, schedule: Mapping[str, Any]) -> Job:
    moment = next_run(schedule, after=_now(endpoint))
    return {"schedule": schedule, "schedule_display": schedule["display"], "next_run_at": moment}


def _schedule(endpoint: Endpoint, value: object) -> dict[str, Any]:
    text = (_text(value, "Schedule") or "").strip()
    if not text:
        raise _refused(400, "Schedule is required")
    if len(text) > _MAX_SCHEDULE:
        raise _refused(400, f"Schedule must be ≤ {_MAX_SCHEDULE} characters")
    try:
        return parse_schedule(text, now=_now(endpoint))
    except ScheduleRefused as exc:
        raise _refused(400, str(exc)) from None


def _name(value: object) -> str:
    name = (_text(value, "Name") or "").strip()
    if not name:
        raise _refused(400, "Name is required")
    if len(name) > _MAX_NAME:
        raise _refused(400, f"Name must be ≤ {_MAX_NAME} characters")
    return name


def _prompt(value: object) -> str:
    prompt = _text(value, "Prompt") or ""
    if len(prompt) > _MAX_PROMPT:
        raise _refused(400, f"Prompt must be ≤ {_MAX_PROMPT} characters")
    if _INJECTION.search(prompt):
        raise _refused(400, "Blocked: the prompt tells its reader to ignore instructions")
    return prompt


def _skills(value: object) -> Job:
    given = value if isinstance(value, list) else [] if value is None else [value]
    names = [scrubbed(str(name)).strip() for name in given]
    skills = list(dict.fromkeys(name for name in names if name))
    return {"skills": skills, "skill": skills[0] if skills else None}


def _repeat(value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise _refused(400, "Repeat must be a positive integer")
    return value


def _text(value: object, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _refused(400, f"{name} must be a string")
    return None if value is None else scrubbed(value)


def _origin(request: Request) -> Job:
    address = request.client.host if request.client else None
    return {
        "platform": "api_server",
        "chat_id": "api",
        "source_ip": address,
        "peer_ip": address,
        "user_agent": request.headers.get("user-agent"),
    }


async def _body(request: Request) -> dict[str, Any]:
    try:
        return await json_object(request)
    except Refusal as refusal:
        raise _refused(400, str(refusal)) from None


def _job_id(request: Request) -> str:
    job_id = str(request.path_params["job_id"])
    if not _ID.fullmatch(job_id):
        raise _refused(400, "Invalid job ID format")
    return job_id


def _answer(job: Job | None) -> Response:
    if job is None:
        raise _unknown()
    return JsonAnswer({"job": job})


def _unknown() -> Refusal:
    return _refused(404, "Job not found")


def _refused(status: int, message: str) -> Refusal:
    return Refusal(status, message, body={"error": message})


def _now(endpoint: Endpoint) -> datetime:
    return datetime.fromtimestamp(endpoint.clock.now_ms() / 1000, UTC)
