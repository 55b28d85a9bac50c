"""From the input of an action to one HTTP request. Pure: no I/O, no clock; the same call gives the same request.

What a row says decides everything; see BodyRule. Source: connector contract §6, §7; design D12.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from aip_hermes.contract import load_capability_file
from aip_hermes.contract.handler import Call
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.bodies import Broken, body_of
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.failures import InputRefused
from aip_hermes.hermes.headers import HeaderRefused, headers_of_call
from aip_hermes.hermes_api import clean_title, is_continuation_id, new_session_id_problem, title_problem
from aip_hermes.ids import HermesSessionKey, IdentityError

__all__ = ["Mapped", "fill_path", "map_call", "named_by", "path_id_problem", "timeout_of"]

_MAX_PATH_ID_BYTES: Final = 4_096
_MAX_QUERY_BYTES: Final = 4_096

_PLACE: Final = re.compile(r"\{([a-z_]+)\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "job_id": (re.compile(r"[0-9a-f]{12}"), "12 hexadecimal digits in lower case"),
}
"""Ids of a path that have one form only; every other one is what an endpoint issued."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapped:
    """A call as a request, with what the handler needs to know about it.

    ids: of the path, by name. session_id: addressed by the path, or named where the row's `session_place` says. new_id:
    asked for by a body that makes a session, trimmed as the endpoint does. body: before serialisation. session_key:
    what is sent as memory scope.
    """

    request: RequestSpec
    ids: Mapping[str, str]
    session_id: str | None
    new_id: str | None
    body: Mapping[str, Any] = field(repr=False)
    session_key: HermesSessionKey | None = field(repr=False)


def map_call(*, operation: Operation, endpoint: Endpoint, call: Call) -> Mapped:
    """Return the one request that `call` means.

    Raises: InputRefused.
    """
    facts = load_capability_file().connector
    ids: dict[str, str] = {}
    try:
        ids.update(_path_ids(operation, call.input))
        target = fill_path(operation.path, ids) + _query(operation, call.input)
        if len(endpoint.base_url) + len(target) > facts.max_request_url_bytes:
            raise Broken(f"the URL would be longer than {facts.max_request_url_bytes} bytes")
        body = body_of(operation, call.input, ids)
        new_id = _new_id(operation, body)
        _check_title(operation, body)
        named = ids.get("session_id") or _named_session(operation, call.input, body)
        session_key = _session_key(call.input)
        headers = headers_of_call(
            operation=operation, endpoint=endpoint, call=call, session_id=named, session_key=session_key
        )
        content = None if operation.body == "none" else _serialise(body, max_bytes=facts.max_request_body_bytes)
    except (Broken, HeaderRefused) as exc:
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
        ids=ids,
        session_id=named,
        new_id=new_id,
        body=body,
        session_key=session_key,
    )


def named_by(operation: Operation, values: Mapping[str, Any]) -> tuple[Mapping[str, str], str | None]:
    """Return what a call names: the ids of its path, and its session, where `Mapped` says; of an input that was mapped.

    Raises: ValueError for one that was not.
    """
    ids = dict(_path_ids(operation, values))
    if "session_id" in ids or operation.session_place is None:
        return ids, ids.get("session_id")
    return ids, _named_session(operation, values, body_of(operation, values, ids))


def timeout_of(operation: Operation, endpoint: Endpoint) -> float:
    """Return the seconds that one exchange may take."""
    return endpoint.turn_timeout_s if operation.turn else operation.http_timeout_s


def fill_path(template: str, ids: Mapping[str, str]) -> str:
    """Put ids into a path template, percent-encoding everything but unreserved characters."""
    return _PLACE.sub(lambda place: quote(ids[place[1]], safe=""), template)


def _path_ids(operation: Operation, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, _path_id(values, name)) for name in _PLACE.findall(operation.path))


def _path_id(values: Mapping[str, Any], name: str) -> str:
    """Find an id of the path: a member of the input, else of its nested body; two that differ are refused."""
    nested = values.get("body")
    found = [source[name] for source in (values, nested) if isinstance(source, Mapping) and name in source]
    if not found:
        raise Broken(f"`{name}` is missing")
    if any(not isinstance(value, str) for value in found):
        raise Broken(f"`{name}` is no string")
    if len(set(found)) > 1:
        raise Broken(f"`{name}` and `body.{name}` differ (the id of a new session is called `id`)")
    value = str(found[0])
    if name in _FORMS and not _FORMS[name][0].fullmatch(value):
        raise Broken(f"`{name}` is not {_FORMS[name][1]}")
    if problem := path_id_problem(value):
        raise Broken(f"`{name}` {problem}")
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
        raise Broken("`query` is no object")
    if any(name not in operation.query for name in nested):
        raise Broken(f"`query` knows {', '.join(operation.query)} only")
    pairs: dict[str, str] = {}
    for place, source in (("query.", nested), ("", values)):
        for name in operation.query:
            if name not in source:
                continue
            text = _query_text(source[name], place + name)
            if pairs.setdefault(name, text) != text:
                raise Broken(f"`{name}` and `query.{name}` differ")
    return "?" + "&".join(f"{name}={quote(pairs[name], safe='')}" for name in sorted(pairs)) if pairs else ""


def _query_text(value: object, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Broken(f"`{place}` is no finite number")
        # An endpoint reads integers only; 5.0 is the same JSON number as 5.
        text = str(int(value)) if value.is_integer() else repr(value)
    elif isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise Broken(f"`{place}` is too large")
        text = str(value)
    elif isinstance(value, str) and value.strip():
        text = value
    else:
        raise Broken(f"`{place}` is neither a text, a number nor a boolean")
    try:
        if len(text.encode("utf-8")) > _MAX_QUERY_BYTES or _CONTROL.search(text):
            raise Broken(f"`{place}` is longer than {_MAX_QUERY_BYTES} bytes or has control characters")
    except UnicodeEncodeError:
        raise Broken(f"`{place}` contains a lone surrogate") from None
    return text


def _new_id(operation: Operation, body: Mapping[str, Any]) -> str | None:
    """Return the id of the session that the request makes, where it names one."""
    if operation.method != "POST" or operation.body != "members" or not operation.path.startswith("/api/sessions"):
        return None
    name = next((name for name in ("id", "session_id") if body.get(name) is not None), None)
    if name is None:
        return None
    value = body[name]
    if not isinstance(value, str):
        raise Broken(f"`{name}` is no string")
    if problem := new_session_id_problem(value):
        raise Broken(f"`{name}`: {problem}")
    new = value.strip()
    if new == ".":
        raise Broken(f"`{name}` is `.`, which a URL can't carry")
    if operation.confirm == "fork" and is_continuation_id(new):
        # Such a fork could not be told from the continuation of a compressed session (design D15).
        raise Broken(f"`{name}` has the form that Hermes gives to continuations of compressed sessions")
    return new


def _named_session(operation: Operation, values: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    """Return the session that a call names outside the path. The endpoint makes it where there is none, so it keeps the
    rules for new ids; and it travels as it is, where white space around it would be lost or become part of it."""
    if operation.session_place is None:
        return None
    source = body if operation.session_place == "body" else values
    if "session_id" not in source:
        return None
    value = source["session_id"]
    if not isinstance(value, str):
        raise Broken("`session_id` is no string")
    if problem := new_session_id_problem(value):
        raise Broken(f"`session_id`: {problem}")
    if value != value.strip() or value == ".":
        raise Broken("`session_id` is `.` or has white space around it")
    return value


def _check_title(operation: Operation, body: Mapping[str, Any]) -> None:
    if operation.body == "members" and "title" in body and (problem := title_problem(clean_title(body["title"]))):
        raise Broken(f"`title`: {problem}")


def _session_key(values: Mapping[str, Any]) -> HermesSessionKey | None:
    nested = values.get("body")
    found: Sequence[Any] = [
        source["session_key"] for source in (values, nested) if isinstance(source, Mapping) and "session_key" in source
    ]
    if not found:
        return None
    if any(not isinstance(value, str) for value in found) or len(set(found)) > 1:
        raise Broken("`session_key` is given twice or is no string")
    try:
        return HermesSessionKey(found[0])
    except IdentityError as exc:
        raise Broken(f"`session_key`: {exc}") from None


def _serialise(body: Mapping[str, Any], *, max_bytes: int) -> bytes:
    try:
        content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise Broken("a text contains a lone surrogate") from None
    except (TypeError, ValueError, RecursionError):
        raise Broken(
            "the body can't be written as JSON: a number that is not finite or too long, or nested too deep"
        ) from None
    if len(content) > max_bytes:
        raise Broken(f"the body is larger than {max_bytes} bytes")
    return content
