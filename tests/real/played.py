"""A script of requests, played on an endpoint; what is answered, without what differs from one run to the next."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.real.model import Answer, ScriptedModel

__all__ = ["Step", "differences", "played"]

_IDS: Final = re.compile(
    r"\b(?:resp|run|msg|call|fc|chatcmpl)[_-][0-9a-zA-Z]{8,}|\bapi(?:_\d+_[0-9a-f]{8}|-[0-9a-f]{16})\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b\d{8}_\d{6}_[0-9a-f]{6}\b|\bcall_\d+\b|\b[0-9a-f]{12}\b"
)
_TIMES: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z)?")
_COUNTED: Final = frozenset({"duration", "last_event_at"})
_DELTAS: Final = frozenset({"assistant.delta", "message.delta", "response.output_text.delta"})
_OLDEST_TIME: Final = 1_500_000_000


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request. MARK in path and body is the run's own; `{name}` in the path is what an earlier step kept.

    keep: name → where in the answer it is, with dots. model: what the model says to it. until: (member, value) of the
    answer; the request, a read, is repeated until it says so. raw: the body in place of JSON.
    """

    name: str
    method: str
    path: str
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    model: Sequence[Answer] = ()
    until: tuple[str, str] | None = None


async def played(
    script: Sequence[Step], client: httpx.AsyncClient, model: ScriptedModel, mark: str
) -> dict[str, dict[str, Any]]:
    """Return, by step, `{status, type, body}`; a stream's body is what _told makes of it."""
    kept: dict[str, str] = {}
    answers: dict[str, dict[str, Any]] = {}
    for step in script:
        model.next.extend(step.model)
        answer = await _asked(step, client, mark, kept)
        body = _body(answer)
        for name, place in step.keep.items():
            found = body
            for part in place.split("."):
                found = found[part]
            kept[name] = str(found)
        kind = answer.headers.get("content-type", "").partition(";")[0]
        answers[step.name] = {"status": answer.status_code, "type": kind, "body": _steady(body, mark)}
    assert not model.next
    return answers


async def _asked(step: Step, client: httpx.AsyncClient, mark: str, kept: Mapping[str, str]) -> httpx.Response:
    path = step.path.replace("MARK", mark)
    for name, value in kept.items():
        path = path.replace("{" + name + "}", value)
    content = step.raw
    if content is None and step.body is not None:
        content = json.dumps(step.body).replace("MARK", mark).encode()
    headers = {"Content-Type": "application/json", **step.headers}
    async with asyncio.timeout(30):
        while True:
            answer = await client.request(step.method, path, content=content, headers=headers)
            if step.until is None or answer.json().get(step.until[0]) == step.until[1]:
                return answer


def _body(answer: httpx.Response) -> Any:
    kind = answer.headers.get("content-type", "")
    if kind.startswith("application/json"):
        return answer.json()
    return _told(answer.text) if kind.startswith("text/event-stream") else answer.text


def _told(text: str) -> dict[str, Any]:
    """Return the events by name and number, and the order of the names."""
    seen: Counter[str] = Counter()
    told: dict[str, Any] = {"order": []}
    for name, data in _events(text):
        seen[name] += 1
        told["order"].append(name)
        told[f"{name} {seen[name]}"] = data
    return told


def _events(text: str) -> Iterator[tuple[str, Any]]:
    """Yield name and data; of several deltas in a row one."""
    last = None
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        named = next((line[6:].strip() for line in lines if line.startswith("event:")), None)
        data = "\n".join(line[5:].strip() for line in lines if line.startswith("data:"))
        value: Any = data if data == "[DONE]" else json.loads(data)
        name = named or (value.get("event") or value.get("type") if isinstance(value, dict) else None)
        chunk = isinstance(value, dict) and value.get("object") == "chat.completion.chunk"
        if chunk and value["choices"][0]["delta"].get("content"):
            name, value["choices"][0]["delta"]["content"] = "content", "..."
        elif isinstance(value, dict) and "delta" in value and name in _DELTAS:
            value["delta"] = "..."
        if name in (*_DELTAS, "content") and name == last:
            continue
        last = name
        yield str(name), value


def _steady(value: Any, mark: str, member: str = "") -> Any:
    """Take out of a value what no two runs have in common (ids, times, numbers of rows and events, counts of tokens),
    and the texts of errors, which are each endpoint's own.
    """
    if isinstance(value, dict):
        above = "error." if member == "error" else ""
        return {name: _steady(each, mark, above + name) for name, each in value.items()}
    if isinstance(value, list):
        return [_steady(each, mark, member) for each in value]
    if isinstance(value, str) and member in ("error", "error.message"):
        return "<text>"
    if isinstance(value, str):
        return _TIMES.sub("<time>", _IDS.sub("<id>", value.replace(mark, "MARK")))
    if isinstance(value, bool) or value is None:
        return value
    if value > _OLDEST_TIME:
        return "<time>"
    if member in ("id", "seq", "sequence_number", *_COUNTED) or "tokens" in member:
        return "<number>"
    return value


def differences(there: Any, here: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (place, what is there, what is here); a member that one of the two lacks is `<none>`."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted({*there, *here}):
            yield from differences(there.get(name, "<none>"), here.get(name, "<none>"), f"{place}.{name}".lstrip("."))
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for number, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif there != here:
        yield place, there, here
