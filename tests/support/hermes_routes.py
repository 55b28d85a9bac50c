"""An endpoint as a function: rows in, answers out, no network. For tables of evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import httpx

__all__ = ["RowsTransport", "TurningTransport"]


class RowsTransport(httpx.MockTransport):
    """Serves `GET /api/sessions/{id}` from `rows`, messages of an id under the id that `resolves` names, and for other
    requests what `answers` has for the method. asked: method and decoded path of each request."""

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        resolves: Mapping[str, str] | None = None,
        answers: Mapping[str, httpx.Response | Exception] | None = None,
    ) -> None:
        self.rows = {row["id"]: dict(row) for row in rows}
        self.resolves = dict(resolves or {})
        self.answers = dict(answers or {})
        self.asked: list[str] = []
        super().__init__(self._serve)

    @property
    def sent(self) -> list[str]:
        return [line for line in self.asked if not line.startswith("GET")]

    def _serve(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.raw_path.decode())
        self.asked.append(f"{request.method} {path}")
        if request.method in self.answers:
            answer = self.answers[request.method]
            if isinstance(answer, Exception):
                raise answer
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        session_id = path.removeprefix("/api/sessions/").removesuffix("/messages")
        if session_id not in self.rows:
            return httpx.Response(404, json={"error": {"message": "no", "code": "session_not_found"}})
        if path.endswith("/messages"):
            return _ascii({"object": "list", "session_id": self.resolves.get(session_id, session_id), "data": []})
        return _ascii({"object": "hermes.session", "session": self.rows[session_id]})


def _ascii(value: object) -> httpx.Response:
    """Answer as an endpoint does: escaped, so that a lone surrogate can be said too."""
    return httpx.Response(200, content=json.dumps(value).encode("ascii"))


class TurningTransport(RowsTransport):
    """Its rows change when a POST arrives."""

    def __init__(self, before: Mapping[str, Any], after: Sequence[Mapping[str, Any]], answer: httpx.Response) -> None:
        super().__init__([before], answers={"POST": answer})
        self._after = {row["id"]: dict(row) for row in after}

    def _serve(self, request: httpx.Request) -> httpx.Response:
        answer = super()._serve(request)
        if request.method == "POST":
            self.rows = self._after
        return answer
