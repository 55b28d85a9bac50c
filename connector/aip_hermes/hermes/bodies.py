"""From the input of an action to the body of its request: one function for each body rule of a row.

Source: connector contract §6.2–§6.4, §7, §8; design D12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aip_hermes.contract import load_capability_file
from aip_hermes.contract.operation import BodyRule, Operation
from aip_hermes.hermes_api import says_something

__all__ = ["Broken", "body_of"]

_TRANSPORT: Final = frozenset({"session_key", "idempotency_key", "_aip"})
"""Members that steer the transport; they never enter a body."""

_STAND_INS: Final = frozenset({"prompt", "query"})
_MESSAGE_ONLY: Final = _STAND_INS | {"max_events"}
"""Members that the connector reads itself where the body is a message."""


class Broken(ValueError):
    """A rule that the input breaks; the text names place and rule, never the value."""


def body_of(operation: Operation, values: Mapping[str, Any], path_ids: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the body that `values` mean, without what steers transport, path or header; empty where there is none.

    Raises: Broken.
    """
    body = _RULES[operation.body](operation, values)
    dropped = _TRANSPORT | path_ids.keys()
    return {name: value for name, value in body.items() if name not in dropped}


def _none(_operation: Operation, _values: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _members(_operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested `body`, else the input."""
    nested = values.get("body", values)
    if not isinstance(nested, Mapping):
        raise Broken("`body` is no object")
    return dict(nested)


def _message(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Let `prompt`, else `query`, stand in for a missing message; an explicit message always wins."""
    body = _members(operation, values)
    if "message" not in body and "input" not in body:
        instead = next((values[name] for name in ("prompt", "query") if name in values), None)
        if isinstance(instead, str) and instead.strip():
            body["message"] = instead
    message = body["message"] if body.get("message") is not None else body.get("input")
    if not says_something(message):
        raise Broken("a message is missing: `message` is a text or a list of parts, not blank")
    return {name: value for name, value in body.items() if name not in _MESSAGE_ONLY}


def _completions(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of the top level; one of `prompt`, `query` and `messages` says what is asked."""
    if "body" in values:
        raise Broken("`body` is not read here; its members belong to the top level")
    given = [name for name in ("messages", "prompt", "query") if name in values]
    if len(given) != 1:
        raise Broken("exactly one of `prompt`, `query` and `messages` is needed")
    asked = values[given[0]]
    if not _said(asked) or isinstance(asked, str) is (given[0] == "messages"):
        raise Broken(f"`{given[0]}` is blank or of the wrong kind: `messages` is a list, the others are texts")
    dropped = _MESSAGE_ONLY | {"messages", "session_id"}
    body = {
        "model": load_capability_file().connector.default_model,
        "messages": asked if given[0] == "messages" else [{"role": "user", "content": asked}],
    }
    return _streaming(operation, body | {name: value for name, value in values.items() if name not in dropped})


def _run(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    body = _members(operation, values)
    if not _said(body.get("input")):
        raise Broken("`input` is missing: a text or a list, not blank")
    named = {"session_id": values["session_id"]} if "session_id" in values else {}
    if operation.session_place is None and ("session_id" in body or named):
        raise Broken("`session_id` has no place here: this operation reads none")
    _agree(body, named)
    return body | named


def _response(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    body = _run(operation, values)
    body.pop("max_events", None)
    return _streaming(operation, body)


def _streaming(operation: Operation, body: dict[str, Any]) -> dict[str, Any]:
    """Say whether the answer is a stream, which the operation decides and nobody else."""
    if body.setdefault("stream", operation.streaming) is not operation.streaming:
        raise Broken(f"`stream` can only be {str(operation.streaming).lower()} here")
    return body


def _approval_choice(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Take the choice from the nested body where it has one, else from the top level; both must agree."""
    known = ("choice", "all", "resolve_all")
    nested = _members(operation, values) if "body" in values else {}
    top = {name: values[name] for name in known if name in values}
    _agree(nested, top)
    body = nested | top
    if not isinstance(body.get("choice"), str) or not body["choice"].strip():
        raise Broken("`choice` is missing")
    return body


def _job(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of the job. A caller may repeat some of a nested body at the top level, with equal values."""
    body = _members(operation, values)
    if "body" in values:
        _agree(body, {name: value for name, value in values.items() if name not in ("body", "job_id") and name in body})
    if not body.keys() - _TRANSPORT - {"job_id"}:
        raise Broken("no member of the job is given")
    return body


def _objective(_operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the agent is given to read; the whole request is made where the run is bound (hermes/operator/)."""
    if not isinstance(values.get("objective"), str) or not values["objective"].strip() or "resume" in values:
        raise Broken("`objective` is missing, blank, or beside `resume`")
    return {name: values[name] for name in _TOLD if name in values}


_TOLD: Final = ("objective", "context", "candidate_capabilities", "constraints")

_RULES: Final[Mapping[BodyRule, Callable[[Operation, Mapping[str, Any]], dict[str, Any]]]] = {
    "none": _none,
    "members": _members,
    "message": _message,
    "completions": _completions,
    "response": _response,
    "run": _run,
    "approval_choice": _approval_choice,
    "job": _job,
    "objective": _objective,
}


def _agree(nested: Mapping[str, Any], top: Mapping[str, Any]) -> None:
    for name in top:
        if name in nested and nested[name] != top[name]:
            raise Broken(f"`{name}` and `body.{name}` differ")


def _said(value: object) -> bool:
    """Whether there is something to say: a text that is not blank, or a list that is not empty."""
    return bool(value.strip() if isinstance(value, str) else value) if isinstance(value, str | list) else False
