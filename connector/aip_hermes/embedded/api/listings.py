"""What the agent brings along: no skills, and one set with one tool."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.agent.tools import TOOLSET
from aip_hermes.embedded.api.answers import JsonAnswer
from aip_hermes.embedded.api.endpoint import Endpoint

__all__ = ["skills", "toolsets"]


async def skills(_endpoint: Endpoint, _request: Request) -> Response:
    """GET /v1/skills."""
    return JsonAnswer({"object": "list", "data": []})


async def toolsets(_endpoint: Endpoint, _request: Request) -> Response:
    """GET /v1/toolsets."""
    return JsonAnswer({"object": "list", "platform": "api_server", "data": [TOOLSET]})
