"""From the input of an action to one HTTP request. Pure: no I/O, no clock; the same call gives the same request.

What a row says decides everything; see BodyRule. Source: connector contract §6, §7; design D12.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from aip_hermes.contract.handler import Call
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.failures import InputRefused
from aip_hermes.hermes.headers import HeaderRefused, headers_of_call
from aip_hermes.hermes_api import clean_title, is_continuation_id, new_session_id_problem, title_problem
from aip_hermes.ids import HermesSessionKey, IdentityError

__all__ = ["MAX_BODY_BYTES", "MAX_URL_BYTES", "Mapped", "fill_path", "map_call", "path_id_problem", "timeout_of"]

MAX_BODY_BYTES: Final = 16_777_216
MAX_URL_BYTES: Final = 131_072
_MAX_PATH_ID_BYTES: Final = 4_096
_MAX_QUERY_BYTES: Final = 4_096

_PLACE: Final = re.compile(r"\{([a-z_]+)\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_TRANSPORT: Final = frozenset({"session_key", "idempotency_key", "_aip"})
"""Members that steer the transport; they never enter a body."""

_MESSAGE_ONLY: Final = frozenset({"max_events", "prompt", "query"})
"""Members that the connector reads itself where the body is a message."""


class _Broken(ValueError):
    """A rule that the input breaks; the text names place and rule, never the value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapped:
    """A call as a request, with what the handler needs to know about it.

    session_id: addressed by the path. new_id: asked for by a body that makes a session, trimmed as the endpoint does.
    body: before serialisation. session_key: what is sent as memory scope.
    """

    request: RequestSpec
    session_id: str | None
    new_id: str | None
    body: Mapping[str, Any] = field(repr=False)
    session_key: HermesSessionKey | None = field(repr=False)


def map_call(*, operation: Operation, endpoint: Endpoint, call: Call) -> Mapped:
    """Return the one request that `call` means.

    Raises: InputRefused.
    """
    ids: dict[str, str] = {}
    try:
        ids.update((name, _path_id(call.input, name)) for name in _PLACE.findall(operation.path))
        target = fill_path(operation.path, ids) + _query(operation, call.input)
        if len(endpoint.base_url) + len(target) > MAX_URL_BYTES:
            raise _Broken(f"the URL would be longer than {MAX_URL_BYTES} bytes")
        body = _body(operation, call.input, ids)
        new_id = _new_id(operation, body)
        _check_title(body)
        session_key = _session_key(call.input)
        headers = headers_of_call(operation=operation, endpoint=endpoint, call=call, session_key=session_key)
        content = None if operation.body == "none" else _serialise(body)
    except (_Broken, HeaderRefused) as exc:
        raise InputRefused(
            f"{operation.name} at Hermes endpoint {endpoint.id} was not sent: {exc}."
            " Correct the input and send it again.",
            endpoint_id=endpoint.id,
            session_id=ids.get("session_id"),
        ) from None
    return Mapped(
        request=RequestSpec(
            method=operation.method,
            target=target,
            headers=headers,
            body=content,
            timeout_s=timeout_of(operation, endpoint),
            mutation=not operation.read_only,
        ),
        session_id=ids.get("session_id"),
        new_id=new_id,
        body=body,
        session_key=session_key,
    )


def timeout_of(operation: Operation, endpoint: Endpoint) -> float:
    """Return the seconds that one exchange may take."""
    return endpoint.turn_timeout_s if operation.turn else operation.http_timeout_s


def fill_path(template: str, ids: Mapping[str, str]) -> str:
    """Put ids into a path template, percent-encoding everything but unreserved characters."""
    return _PLACE.sub(lambda place: quote(ids[place[1]], safe=""), template)


def _path_id(values: Mapping[str, Any], name: str) -> str:
    """Find an id of the path: a member of the input, else of its nested body; two that differ are refused."""
    nested = values.get("body")
    found = [source[name] for source in (values, nested) if isinstance(source, Mapping) and name in source]
    if not found:
        raise _Broken(f"`{name}` is missing")
    if any(not isinstance(value, str) for value in found):
        raise _Broken(f"`{name}` is no string")
    if len(set(found)) > 1:
        raise _Broken(f"`{name}` and `body.{name}` differ (the id of a new session is called `id`)")
    value = str(found[0])
    if problem := path_id_problem(value):
        raise _Broken(f"`{name}` {problem}")
    return value


def path_id_problem(value: str) -> str | None:
    """Say why no path can carry `value`, a caller's id or one that an endpoint answered; None when one can."""
    if not value:
        return "is empty"
    if value in (".", ".."):
        return "is `.` or `..`, which a URL can't carry"
    if any(c in value for c in "\0\r\n"):
        return "contains NUL, CR or LF"
    try:
        if len(quote(value, safe="")) > _MAX_PATH_ID_BYTES:
            return f"is longer than {_MAX_PATH_ID_BYTES} bytes when encoded"
    except UnicodeEncodeError:
        return "contains a lone surrogate"
    return None


def _query(operation: Operation, values: Mapping[str, Any]) -> str:
    if not operation.query:
        return ""
    nested = values.get("query", {})
    if not isinstance(nested, Mapping):
        raise _Broken("`query` is no object")
    if any(name not in operation.query for name in nested):
        raise _Broken(f"`query` knows {', '.join(operation.query)} only")
    pairs: dict[str, str] = {}
    for place, source in (("query.", nested), ("", values)):
        for name in operation.query:
            if name not in source:
                continue
            text = _query_text(source[name], place + name)
            if pairs.setdefault(name, text) != text:
                raise _Broken(f"`{name}` and `query.{name}` differ")
    return "?" + "&".join(f"{name}={quote(pairs[name], safe='')}" for name in sorted(pairs)) if pairs else ""


def _query_text(value: object, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Broken(f"`{place}` is no finite number")
        # An endpoint reads integers only; 5.0 is the same JSON number as 5.
        text = str(int(value)) if value.is_integer() else repr(value)
    elif isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise _Broken(f"`{place}` is too large")
        text = str(value)
    elif isinstance(value, str) and value.strip():
        text = value
    else:
        raise _Broken(f"`{place}` is neither a text, a number nor a boolean")
    try:
        if len(text.encode("utf-8")) > _MAX_QUERY_BYTES or _CONTROL.search(text):
            raise _Broken(f"`{place}` is longer than {_MAX_QUERY_BYTES} bytes or has control characters")
    except UnicodeEncodeError:
        raise _Broken(f"`{place}` contains a lone surrogate") from None
    return text


def _body(operation: Operation, values: Mapping[str, Any], path_ids: Mapping[str, str]) -> Mapping[str, Any]:
    if operation.body == "none":
        return {}
    source = values.get("body", values)
    if not isinstance(source, Mapping):
        raise _Broken("`body` is no object")
    body = dict(source)
    if operation.body == "message":
        _put_message(body, values)
    dropped = _TRANSPORT | path_ids.keys() | (_MESSAGE_ONLY if operation.body == "message" else frozenset())
    return {name: value for name, value in body.items() if name not in dropped}


def _put_message(body: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Let `prompt`, else `query`, stand in for a missing message; an explicit message always wins."""
    if "message" not in body and "input" not in body:
        instead = next((values[name] for name in ("prompt", "query") if name in values), None)
        if isinstance(instead, str) and instead.strip():
            body["message"] = instead
    message = body["message"] if body.get("message") is not None else body.get("input")
    given = message.strip() if isinstance(message, str) else message if isinstance(message, list) else None
    if not given:
        raise _Broken("a message is missing: `message` is a text or a list of parts, not blank")


def _new_id(operation: Operation, body: Mapping[str, Any]) -> str | None:
    """Return the id of the session that the request makes, where it names one."""
    if operation.method != "POST" or operation.body != "members" or not operation.path.startswith("/api/sessions"):
        return None
    name = next((name for name in ("id", "session_id") if body.get(name) is not None), None)
    if name is None:
        return None
    value = body[name]
    if not isinstance(value, str):
        raise _Broken(f"`{name}` is no string")
    if problem := new_session_id_problem(value):
        raise _Broken(f"`{name}`: {problem}")
    new = value.strip()
    if new == ".":
        raise _Broken(f"`{name}` is `.`, which a URL can't carry")
    if operation.confirm == "fork" and is_continuation_id(new):
        # Such a fork could not be told from the continuation of a compressed session (design D15).
        raise _Broken(f"`{name}` has the form that Hermes gives to continuations of compressed sessions")
    return new


def _check_title(body: Mapping[str, Any]) -> None:
    if "title" in body and (problem := title_problem(clean_title(body["title"]))):
        raise _Broken(f"`title`: {problem}")


def _session_key(values: Mapping[str, Any]) -> HermesSessionKey | None:
    nested = values.get("body")
    found: Sequence[Any] = [
        source["session_key"] for source in (values, nested) if isinstance(source, Mapping) and "session_key" in source
    ]
    if not found:
        return None
    if any(not isinstance(value, str) for value in found) or len(set(found)) > 1:
        raise _Broken("`session_key` is given twice or is no string")
    try:
        return HermesSessionKey(found[0])
    except IdentityError as exc:
        raise _Broken(f"`session_key`: {exc}") from None


def _serialise(body: Mapping[str, Any]) -> bytes:
    try:
        content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise _Broken("a text contains a lone surrogate") from None
    except (TypeError, ValueError, RecursionError):
        raise _Broken(
            "the body can't be written as JSON: a number that is not finite or too long, or nested too deep"
        ) from None
    if len(content) > MAX_BODY_BYTES:
        raise _Broken(f"the body is larger than {MAX_BODY_BYTES} bytes")
    return content
