"""An endpoint that is only read: rows, messages and failures as a test says; and a case made as `prepare` makes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import httpx

from aip_hermes.contract.reconciliation import Beside, Uncertain, Verdict
from aip_hermes.hermes import HermesConnector
from aip_hermes.hermes.reconcile import QuietTimes
from aip_hermes.ids import ActionId, TenantId
from aip_hermes.ports import NoFaults
from tests.support.hermes_calls import FakeClock, call_of, endpoint_of, handler_of
from tests.support.hermes_stub import row_of

__all__ = ["INTENT_S", "LATER", "SOON", "ReadOnlyEndpoint", "after", "line"]

INTENT_S = 1_796_071_500.0
"""When the action was sent, Unix seconds."""

SOON, LATER = 1.0, 1_000.0
"""Seconds after the end of the action: inside of every quiet time, and after all of them."""


def line(role: str, content: str, *, at: float = INTENT_S + 1, finish: str | None = "stop") -> dict[str, Any]:
    """Return a message as the endpoint shows it."""
    reason = finish if role == "assistant" else None
    return {"role": role, "content": content, "timestamp": at, "finish_reason": reason, "tool_calls": None}


class ReadOnlyEndpoint(httpx.MockTransport):
    """rows: session objects by id. messages: by id of the asked session: whose they are, and they. broken: answers for
    paths, or what is raised. asked: method and path of each request. then: what happens after an answer, by path, once.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]] = (),
        *,
        messages: Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]] | None = None,
        broken: Mapping[str, httpx.Response | Exception] | None = None,
    ) -> None:
        self.rows = {row["id"]: dict(row) for row in rows}
        self.messages = dict(messages or {})
        self.broken = dict(broken or {})
        self.asked: list[tuple[str, str]] = []
        self.then: dict[str, Callable[[], None]] = {}
        super().__init__(self._serve)

    def _serve(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.raw_path.decode()).partition("?")[0]
        answer = self._answer(request, path)
        if (change := self.then.pop(path, None)) is not None:
            change()
        return answer

    def _answer(self, request: httpx.Request, path: str) -> httpx.Response:
        self.asked.append((request.method, path))
        if (answer := self.broken.get(path)) is not None:
            if isinstance(answer, Exception):
                raise answer
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        if path == "/api/sessions":
            return _json({"object": "list", "data": list(self.rows.values()), "has_more": False})
        session_id = path.removeprefix("/api/sessions/").removesuffix("/messages")
        if session_id not in self.rows:
            return httpx.Response(404, json={"error": {"message": "no", "code": "session_not_found"}})
        if path.endswith("/messages"):
            whose, lines = self.messages.get(session_id, (session_id, ()))
            return _json({"object": "list", "session_id": whose, "data": list(lines)})
        return _json({"object": "hermes.session", "session": self.rows[session_id]})


def _json(value: object) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(value).encode("ascii"))


async def after(
    operation: str,
    now: ReadOnlyEndpoint,
    *,
    values: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    seconds: float = LATER,
    details: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    tenant: str = "tenant-a",
    said_again: Sequence[bool] = (),
    said_in: str | None = None,
    **endpoint: Any,
) -> Verdict:
    """Return the verdict about an action that was prepared on the row `before` and finds the endpoint as `now`.

    seconds: since its end. said_again: other turns that said the same, and whether they completed; said_in: the session
    that they named, where it is another one. Checks that everything that was asked of the endpoint is a read.
    """
    clock = FakeClock(round(INTENT_S * 1000))
    if facts is None:
        facts = await _prepared(operation, values, row_of("s1") if before is None else before, clock)
    clock.ms += round(seconds * 1000)
    action = Uncertain(
        action_id=ActionId("act_1"),
        tenant_id=TenantId(tenant),
        facts=facts,
        intent_at_ms=round(INTENT_S * 1000),
        settled_at_ms=round(INTENT_S * 1000),
        details=details or {},
        beside=tuple(Beside(facts=_naming(facts, said_in), certain=certain) for certain in said_again),
    )
    async with HermesConnector(
        [endpoint_of(**endpoint)], clock=clock, faults=NoFaults(), transport=now, quiet=QuietTimes(turns_s=900)
    ) as connector:
        verdict = await handler_of(connector, operation).reconcile(action)
    assert {method for method, _ in now.asked} <= {"GET"}
    assert len(verdict.evidence) <= len(now.asked) + 4
    return verdict


def _naming(facts: Mapping[str, Any], session_id: str | None) -> Mapping[str, Any]:
    return facts if session_id is None else {**facts, "before": {**facts["before"], "session_id": session_id}}


async def _prepared(
    operation: str, values: Mapping[str, Any] | None, before: Mapping[str, Any], clock: FakeClock
) -> Mapping[str, Any]:
    then = ReadOnlyEndpoint([before])
    async with HermesConnector([endpoint_of()], clock=clock, faults=NoFaults(), transport=then) as connector:
        return (await handler_of(connector, operation).prepare(call_of(operation, values), None)).facts
