"""Sentences for a person: what was asked, and the next safe step. No address and no credential ever enters them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aip_hermes.hermes_api import HermesCode
from aip_hermes.ids import ActionId, EndpointId

__all__ = ["Subject", "shown", "step_after"]

_MAX_SHOWN_CHARS: Final = 80


def shown(identity: str) -> str:
    """Return an id for a sentence: quoted, on one line, bounded."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in identity)
    return f"`{text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 1] + '…'}`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Whom and what a request concerns.

    doing: what was asked, such as `session_fork`. new_id: of the session to be made. ids: of what is addressed beside a
    session, such as `job_id`. turn, fork: what may be going on after an uncertain end. first: the request is a read
    before `doing`, which has not been sent.
    """

    endpoint_id: EndpointId
    doing: str
    action_id: ActionId | None = None
    session_id: str | None = None
    new_id: str | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    turn: bool = False
    fork: bool = False
    first: bool = False

    @property
    def place(self) -> str | None:
        """What is addressed, for a sentence: `session `a``; None where nothing is."""
        if self.session_id is not None:
            return f"session {shown(self.session_id)}"
        if self.new_id is not None:
            return f"new session {shown(self.new_id)}"
        return next((f"{name.removesuffix('_id')} {shown(value)}" for name, value in self.ids.items()), None)

    @property
    def said(self) -> str:
        """Begin a sentence about the answer: `For session_get of session `a`, Hermes endpoint primary`."""
        place = "" if self.place is None else f" of {self.place}"
        before = "the read before " if self.first else ""
        return f"For {before}{self.doing}{place}, Hermes endpoint {self.endpoint_id}"


_STEPS: Final[dict[str, str]] = {
    HermesCode.SESSION_NOT_FOUND: "The endpoint has no such session; list its sessions and check the id.",
    HermesCode.SESSION_EXISTS: "The id is taken; read that session, or choose another id, a new Action ID and key.",
    HermesCode.INVALID_TITLE: "The title is in use or too long; choose another title, a new Action ID and a new key.",
    HermesCode.INVALID_SESSION_ID: "Choose another session id, a new Action ID and a new key.",
    HermesCode.UNSUPPORTED_SESSION_FIELD: "Only `title` and `end_reason` can change; use a new Action ID and key.",
    HermesCode.BODY_TOO_LARGE: "Send a smaller body under a new Action ID and key.",
    HermesCode.TURN_IN_PROGRESS: "A turn of this session runs; send the same action again when it has ended.",
    "run_not_found": "The endpoint knows no such run: it is over, was forgotten, or never was; check the id.",
    "approval_not_active": "The run waits for nothing; read its status.",
    "approval_not_pending": "The run waits for nothing any more; read its status.",
}

_STEPS_OF_STATUS: Final[dict[int, str]] = {
    401: "It refused the endpoint key; check the key file that is configured for this endpoint.",
    403: "It refused the endpoint key or where the request came from; check this endpoint's key file and address.",
    404: "Nothing answers there; check that the address of this endpoint is the root of a Hermes API server.",
    413: "Send a smaller body under a new Action ID and key.",
}

_CHECKS_OF_REASON: Final[dict[str, str]] = {
    "tls": "Check that this endpoint speaks https and shows a certificate that this machine trusts",
}


def step_after(
    subject: Subject,
    *,
    uncertain: bool,
    mutation: bool,
    sent: bool = True,
    status: int | None = None,
    code: str | None = None,
    known: bool = False,
    retryable: bool = False,
    retry_after_ms: int | None = None,
    reason: str | None = None,
) -> str:
    """Return the next safe step after a failure.

    known: a route of Hermes refused, with an error object of its own. retryable: the same action may be sent again.
    Never said of another failure: its stored result would answer. reason: why an exchange brought no whole answer.
    """
    if uncertain:
        return _uncertain_step(subject)
    unsent = f"{subject.doing} was not sent. " if subject.first else ""
    if not sent:
        check = _CHECKS_OF_REASON.get(reason or "", "Check that the endpoint runs")
        return f"{unsent or 'Nothing was sent. '}{check}, then send the same action again."
    if code in _STEPS and not subject.first:
        return _STEPS[code]
    if status is not None and status not in (401, 403) and code == HermesCode.SESSION_NOT_FOUND:
        return unsent + _STEPS[HermesCode.SESSION_NOT_FOUND]
    if status == 404 and known and subject.ids:
        return f"{unsent}The endpoint has no such {next(iter(subject.ids)).removesuffix('_id')}; check the id."
    if status == 404 and known and mutation:
        return "Nothing was changed: the endpoint does not have what the request names; use a new Action ID and key."
    if status in _STEPS_OF_STATUS:
        return unsent + _STEPS_OF_STATUS[status]
    if retryable:
        wait = "" if not retry_after_ms else f" after {retry_after_ms / 1000:g} s"
        return f"{unsent}Nothing was changed; send the same action again{wait}."
    if status is None:
        return f"{unsent}{_STEPS_OF_STATUS[404]}"
    if not mutation:
        return f"{unsent}Correct the request and send it under a new Action ID."
    return "Nothing was changed; correct the request and use a new Action ID and a new key."


def _uncertain_step(subject: Subject) -> str:
    action = f"query action {subject.action_id}" if subject.action_id is not None else "query the action"
    if subject.fork:
        source = shown(subject.session_id or "")
        child = f" and child {shown(subject.new_id)}" if subject.new_id is not None else " and the newest child of it"
        return (
            f"The fork may be half done: {action}, inspect source {source}{child} before you use a new idempotency key."
        )
    read = "" if subject.place is None else f" and read {subject.place.removeprefix('new ')}"
    if subject.turn:
        return f"The turn may still be running or be stored: {action}{read} before sending again."
    return f"The effect may have happened: {action}{read} before sending again."
