"""Rows of an endpoint's sessions, and what else approvals are about, read for evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from aip_hermes.contract.rows import Target
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.failures import InvalidResponse
from aip_hermes.hermes.headers import base_headers
from aip_hermes.hermes.request import fill_path, path_id_problem
from aip_hermes.hermes.wanted import sha256_text
from aip_hermes.hermes.wording import Subject, step_after
from aip_hermes.hermes_api import clean_title
from aip_hermes.ids import ActionId

__all__ = ["Listed", "Rows", "SessionRow"]

_ROW: Final = "/api/sessions/{session_id}"
_MESSAGES: Final = "/api/sessions/{session_id}/messages"
_LISTING: Final = "/api/sessions?include_children=true"
_READ_TIMEOUT_S: Final = 30.0
_WORK: Final = ("api_call_count", "input_tokens", "output_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRow:
    """What evidence needs of a session object; members that an endpoint leaves out are None.

    started_at, ended_at: Unix seconds. title_sha256: of the title as stored, None where there is none. worked: model
    calls and tokens, which grow with every answer of a model, also where the transcript was compacted meanwhile.
    """

    id: str
    started_at: float | None
    ended_at: float | None
    end_reason: str | None
    message_count: int | None
    title_sha256: str | None
    parent_session_id: str | None
    worked: tuple[int | None, ...] = ()
    source: str | None = None

    @classmethod
    def of(cls, session: Mapping[str, Any]) -> Self | None:
        """Read a session object; None when it has no id."""
        if not isinstance(session.get("id"), str):
            return None
        title = clean_title(session.get("title"))
        return cls(
            id=session["id"],
            started_at=_number(session.get("started_at")),
            ended_at=_number(session.get("ended_at")),
            end_reason=_text(session.get("end_reason")),
            message_count=_count(session.get("message_count")),
            title_sha256=None if title is None else sha256_text(title),
            parent_session_id=_text(session.get("parent_session_id")),
            worked=tuple(_count(session.get(name)) for name in _WORK),
            source=_text(session.get("source")),
        )

    @classmethod
    def absent(cls, session_id: str) -> Self:
        """Return the row of a session that the call itself will make: without messages, not started."""
        return cls(
            id=session_id,
            started_at=None,
            ended_at=None,
            end_reason=None,
            message_count=0,
            title_sha256=None,
            parent_session_id=None,
        )

    @property
    def ended(self) -> bool:
        return self.ended_at is not None or self.end_reason is not None

    @property
    def compressed(self) -> bool:
        """Whether the transcript moved on to a continuation."""
        return self.end_reason == "compression"

    def facts(self) -> dict[str, Any]:
        """Return it as JSON: ids, times, counts and hashes; `worked` in the order of the row."""
        return {
            "session_id": self.id,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "end_reason": self.end_reason,
            "message_count": self.message_count,
            "title_sha256": self.title_sha256,
            "parent_session_id": self.parent_session_id,
            "worked": list(self.worked),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One page of a listing. more: whether rows may follow behind it: as the endpoint says, or as it is full."""

    rows: list[Any]
    more: bool


class Rows:
    """Reads about sessions of one endpoint on behalf of one call.

    doing: the operation for which they are read. first: they happen before it is sent. Each is sent once: one that
    fails before sending leaves the action free to be sent again, one that fails afterwards is evidence of its own.
    """

    def __init__(
        self,
        attempts: Attempts,
        *,
        endpoint: Endpoint,
        doing: str,
        action_id: ActionId,
        deadline_ms: int | None,
        first: bool,
    ) -> None:
        self._attempts = attempts
        self._endpoint = endpoint
        self._doing = doing
        self._action_id = action_id
        self._deadline_ms = deadline_ms
        self._first = first

    async def row(self, session_id: str) -> SessionRow:
        """Read one row.

        Raises: HermesFailed, certain.
        """
        output = await self._read(_ROW, {"session_id": session_id})
        session = output.get("session")
        row = SessionRow.of(session) if isinstance(session, Mapping) else None
        if row is None:
            subject = self._subject({"session_id": session_id})
            raise InvalidResponse(
                f"{subject.said} answered without a session object."
                f" {step_after(subject, uncertain=False, mutation=False)}",
                endpoint_id=self._endpoint.id,
                session_id=session_id,
            )
        return row

    async def target(self, target: Target, ids: Mapping[str, str]) -> dict[str, Any]:
        """Read what an approval is about, as the endpoint answers it.

        Raises: HermesFailed, certain.
        """
        output = await self._read(target.path, ids)
        found = output if target.member is None else output.get(target.member)
        if not isinstance(found, dict):
            subject = self._subject(ids)
            raise InvalidResponse(
                f"{subject.said} answered without a `{target.member}` object."
                f" {step_after(subject, uncertain=False, mutation=False)}",
                endpoint_id=self._endpoint.id,
                session_id=subject.session_id,
                details=subject.ids,
            )
        return found

    async def listed(self, *, limit: int, offset: int) -> Listed:
        """Return one page of all rows, children too, as the endpoint lists them.

        Raises: HermesFailed, certain.
        """
        answered = await self._read(f"{_LISTING}&limit={limit}&offset={offset}", {})
        found, more = answered.get("data"), answered.get("has_more")
        if not isinstance(found, list):
            subject = self._subject({})
            raise InvalidResponse(
                f"{subject.said} answered a listing without `data`."
                f" {step_after(subject, uncertain=False, mutation=False)}",
                endpoint_id=self._endpoint.id,
            )
        # An endpoint may give fewer rows than it is asked for, so that the number of them ends no listing.
        full = len(found) >= limit
        return Listed(rows=found, more=bool(found) and (more if isinstance(more, bool) else full))

    async def answer(self, template: str, ids: Mapping[str, str]) -> dict[str, Any]:
        """Return what the endpoint answers to a GET of a path, its places filled from `ids`.

        Raises: HermesFailed, certain.
        """
        return await self._read(template, ids)

    async def resolved(self, session_id: str) -> str | None:
        """Return the id under which the endpoint answers the transcript of `session_id`; the transcript is dropped.

        Raises: HermesFailed, certain.
        """
        return _text((await self._read(_MESSAGES, {"session_id": session_id})).get("session_id"))

    async def _read(self, template: str, ids: Mapping[str, str]) -> dict[str, Any]:
        if problem := next((problem for value in ids.values() if (problem := path_id_problem(value))), None):
            # An id of the caller's was looked at before; this one came from the endpoint.
            raise InvalidResponse(
                f"{self._subject({}).said} named a session whose id {problem}, so that it can't be read.",
                endpoint_id=self._endpoint.id,
                details={"sent": False},
            )
        request = RequestSpec(
            method="GET",
            target=fill_path(template, ids),
            headers=base_headers(self._endpoint, auth=True, body=False),
            body=None,
            timeout_s=_READ_TIMEOUT_S,
            mutation=False,
        )
        asked = Asked(endpoint=self._endpoint, subject=self._subject(ids), mutation=False)
        return await self._attempts.once(request, asked, deadline_ms=self._deadline_ms)

    def _subject(self, ids: Mapping[str, str]) -> Subject:
        return Subject(
            endpoint_id=self._endpoint.id,
            doing=self._doing,
            action_id=self._action_id,
            session_id=ids.get("session_id"),
            ids={name: value for name, value in ids.items() if name != "session_id"},
            first=self._first,
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
