"""Plays the checklist point by point, takes the sessions away again, and seals the evidence."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import structlog

from aip_hermes import wire
from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.checklist.case import Case, DoesNotApply, NotAsWanted, Point, hashed, marked
from aip_hermes.client.checklist.cleaning import cleaned
from aip_hermes.client.checklist.document import Cleaned, Deployment, Document, PointEvidence, Program, sealed
from aip_hermes.client.checklist.points import POINTS, Row
from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.lifecycle.failures import NotVerified
from aip_hermes.client.lifecycle.states import LifecyclePolicy
from aip_hermes.ids import EndpointId
from aip_hermes.ports import Clock, NewId, SystemClock, new_id

__all__ = ["Told", "run_checklist"]

T = TypeVar("T")

log = structlog.get_logger(__name__)

_POLICY: Final = LifecyclePolicy()
_FAILED: Final = "the exchange failed"
_MAX_REASON: Final = 400
_MAX_LACKING: Final = 8
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
"""What `repr` makes of a text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a person is told while it runs. outcome: None when a point begins."""

    number: int
    of: int
    sentence: str
    outcome: Literal["pass", "fail", "not_applicable"] | None = None
    reason: str | None = None
    quirks: tuple[str, ...] = ()


async def run_checklist(
    *,
    requester: AipClient,
    reviewer: AipClient | None,
    program: Program,
    endpoint: EndpointId,
    run: str,
    tell: Callable[[Told], None] = lambda _: None,
    on_cleanup: Callable[[tuple[Cleaned, ...]], None] = lambda _: None,
    policy: LifecyclePolicy = _POLICY,
    keep_sessions: bool = False,
    clock: Clock | None = None,
    new_id: NewId = new_id,
) -> Document:
    """Play all points and return the sealed evidence.

    requester: with a store of identities; its token may write actions and invoke the endpoint's session capabilities.
    reviewer: another principal of the tenant, who may decide; None leaves the delete open and the sessions there.
    run: names the sessions, `verify-<run>…`. Sessions are taken away whatever happens in between; `on_cleanup` hears
    of it first, also when this is cancelled. Raises: ClientFailure where nothing could be asked at all.
    """
    clock = clock or SystemClock()
    case = Case(requester=requester, reviewer=reviewer, endpoint=endpoint, run=run, new_id=new_id, policy=policy)
    started_at = wire.rfc3339(clock.now_ms())
    health = await requester.connection.health()
    points: list[PointEvidence] = []
    left: tuple[Cleaned, ...] = ()
    try:
        for row in POINTS:
            tell(Told(number=row.number, of=len(POINTS), sentence=row.sentence))
            played = await _played(case, row, points, clock)
            points.append(played)
            tell(
                Told(
                    number=row.number,
                    of=len(POINTS),
                    sentence=row.sentence,
                    outcome=played.outcome,
                    reason=played.reason,
                    quirks=played.quirks,
                )
            )
        deployment = await _deployment(case, health)
    finally:
        left = await cleaned(case, keep=keep_sessions)
        on_cleanup(left)
    return sealed(
        run=run,
        started_at=started_at,
        ended_at=wire.rfc3339(clock.now_ms()),
        program=program,
        deployment=deployment,
        points=tuple(points),
        cleanup=left,
    )


async def _played(case: Case, row: Row, before: list[PointEvidence], clock: Clock) -> PointEvidence:
    point = Point()
    started_at = wire.rfc3339(clock.now_ms())
    outcome: Literal["pass", "fail", "not_applicable"] = "pass"
    reason: str | None = None
    passed = {each.id for each in before if each.outcome == "pass"}
    try:
        if missing := [need for need in row.needs if need not in passed]:
            raise DoesNotApply(f"it stands on {', '.join(missing)}, which did not pass")
        await row.play(case, point)
    except DoesNotApply as why:
        outcome, reason = "not_applicable", str(why)
    except NotAsWanted as claim:
        outcome, reason = "fail", f"expected: {claim}"
    except ClientFailure as failure:
        outcome, reason = "fail", _told(failure)
    except TimeoutError:
        outcome, reason = "fail", "the time was up; what was asked goes on"
    except Exception as broken:
        # The last loop: an answer of another form than this program knows fails its point, and the evidence says so.
        outcome, reason = "fail", f"the point broke off: {type(broken).__name__}"
        log.debug("checklist.point_broke_off", point=row.id, exc_info=True)
    return PointEvidence(
        number=row.number,
        id=row.id,
        sentence=row.sentence,
        outcome=outcome,
        reason=reason,
        done=tuple(point.done),
        held=tuple(point.held),
        seen=point.seen,
        quirks=tuple(point.quirks),
        started_at=started_at,
        ended_at=wire.rfc3339(clock.now_ms()),
    )


def _told(failure: ClientFailure) -> str:
    """Return codes only: what a server or an endpoint says in words stays out of the evidence (design D19)."""
    about = [f"{_FAILED}: {marked(failure.code)}"]
    if isinstance(failure, NotVerified):
        # A sentence of the lifecycle; what it quotes is somebody else's.
        return f"{about[0]}: {_QUOTED.sub('…', failure.message)}"[:_MAX_REASON]
    cause = failure.details.get("cause")
    if isinstance(cause, str):
        about.append(f"cause {marked(cause)}")
    provider = failure.details.get("provider")
    status = provider.get("status") if isinstance(provider, dict) else None
    if isinstance(status, int):
        about.append(f"the endpoint answered {status}")
    for name in ("missing", "missing_scopes"):
        lacking = failure.details.get(name)
        if isinstance(lacking, list) and lacking:
            about.append(f"missing: {' '.join(marked(str(each)) for each in lacking[:_MAX_LACKING])}")
    for name in ("step", "action_id", "session_id"):
        value = failure.details.get(name)
        if isinstance(value, str):
            about.append(f"{name.removesuffix('_id')} {marked(value)}")
    return ", ".join(about)[:_MAX_REASON]


async def _deployment(case: Case, health: dict[str, object]) -> Deployment:
    """Ask who is there. What does not answer, or not to this token, stays None: it is no point of the checklist."""
    found = case.discovered
    me = await _or_none(case.requester.me)
    reviewer = None if case.reviewer is None else await _or_none(case.reviewer.me)
    manifest = await _or_none(case.requester.connection.manifest)
    catalog = await _or_none(lambda: case.requester.capabilities(limit=1))
    provider = await _or_none(lambda: case.requester.call(case.reads.capability("health"), {}))
    said = provider.output if provider is not None and isinstance(provider.output, dict) else {}
    return Deployment(
        origin=case.requester.origin,
        service=_mark(health.get("service")),
        protocol_version=_mark(health.get("version")),
        manifest_sha256=None if manifest is None else hashed(manifest),
        catalog_revision=None if catalog is None else catalog.catalog_revision,
        principal_id=None if me is None else _mark(me.principal_id),
        tenant_id=None if me is None else _mark(me.tenant_id),
        reviewer_id=None if reviewer is None else _mark(reviewer.principal_id),
        endpoint=marked(case.endpoint),
        provider=_mark(said.get("platform")),
        provider_version=_mark(said.get("version")),
        contracts={} if found is None else {name: _mark(digest) for name, digest in found.digests.items()},
    )


async def _or_none(ask: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await ask()
    except ClientFailure:
        return None


def _mark(value: object) -> str | None:
    return marked(value) if isinstance(value, str) and value else None
