"""A document of a verification that never ran, and a run of the checklist before a lifecycle site."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from aip_hermes.client import SqliteIdentityStore
from aip_hermes.client.checklist import (
    POINTS,
    Cleaned,
    Deployment,
    Document,
    PointEvidence,
    Program,
    Told,
    run_checklist,
    sealed,
)
from aip_hermes.ids import EndpointId
from tests.support.lifecycle_site import QUICK, LifecycleSite

__all__ = ["PROGRAM", "a_document", "verified"]

PROGRAM = Program(distribution="aip-hermes-connector", version="1.0", code_sha256="sha256:" + "1" * 64)
_AT = "2030-01-01T00:00:00.5Z"


def a_document() -> Document:
    """Return a sealed document in which every point passed."""
    points = tuple(
        PointEvidence(
            number=row.number,
            id=row.id,
            sentence=row.sentence,
            outcome="pass",
            reason=None,
            done=("called something",),
            held=("it held",),
            seen={"status": "completed", "messages": 2, "own": True, "missing": None},
            quirks=("fork-child-resolves",) if row.id == "separation" else (),
            started_at=_AT,
            ended_at=_AT,
        )
        for row in POINTS
    )
    return sealed(
        run="0123456789ab",
        started_at=_AT,
        ended_at=_AT,
        program=PROGRAM,
        deployment=Deployment(origin="http://127.0.0.1:8080", endpoint="primary", contracts={"session_get": None}),
        points=points,
        cleanup=(Cleaned(session_id="verify-0123456789ab", outcome="deleted"),),
    )


async def verified(
    site: LifecycleSite,
    *,
    who: str = "requester",
    reviewer: str | None = "reviewer",
    transport: httpx.AsyncBaseTransport | None = None,
    reviewer_transport: httpx.AsyncBaseTransport | None = None,
    tell: Callable[[Told], None] = lambda _: None,
    on_cleanup: Callable[[tuple[Cleaned, ...]], None] = lambda _: None,
) -> Document:
    """Play the checklist at a site. who, reviewer: names of token files."""
    async with (
        SqliteIdentityStore(site.folder / "ids" / "identities.db") as store,
        site.client(who, store=store, transport=transport) as requester,
        site.client(reviewer or who, transport=reviewer_transport) as second,
    ):
        return await run_checklist(
            requester=requester,
            reviewer=None if reviewer is None else second,
            program=PROGRAM,
            endpoint=EndpointId("primary"),
            run="0123456789ab",
            tell=tell,
            on_cleanup=on_cleanup,
            policy=QUICK,
        )
