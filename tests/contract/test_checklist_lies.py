"""The checklist where somebody changes the endpoint between a call and what reads it back: the evidence says so, in the
words of this program alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from aip_hermes.client.checklist import markdown, problems_of
from aip_hermes.embedded import SessionDB
from tests.support.checklist_evidence import verified
from tests.support.lifecycle_site import lifecycle_site
from tests.support.markers import found_in, mark

RUN = "0123456789ab"
SOURCE, CHILD = f"verify-{RUN}", f"verify-{RUN}-fork"

Change = Callable[[SessionDB], Awaitable[object]]


class MeddlingTransport(httpx.AsyncBaseTransport):
    """Runs `change` once: around the first message to the server that holds every one of `words`."""

    def __init__(self, *words: bytes, change: Callable[[], Awaitable[object]], before: bool) -> None:
        self._inner = httpx.AsyncHTTPTransport(retries=0)
        self._words = words
        self._change: Callable[[], Awaitable[object]] | None = change
        self._before = before

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        change = self._change if all(word in body for word in self._words) else None
        if change is None:
            return await self._inner.handle_async_request(request)
        self._change = None
        if self._before:
            await change()
        answer = await self._inner.handle_async_request(request)
        await answer.aread()
        if not self._before:
            await change()
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


async def forget(db: SessionDB) -> None:
    await db.delete_session(SOURCE)
    await db.create_session(SOURCE, "api_server")


async def close_first(db: SessionDB) -> None:
    await db.end_session(CHILD, mark("reason"))


async def retitle(db: SessionDB) -> None:
    await db.set_session_title(SOURCE, mark("title"))


async def resurrect(db: SessionDB) -> None:
    await db.create_session(CHILD, mark("operation"))


LIES: dict[str, tuple[tuple[bytes, ...], Change, bool, str, str, tuple[str, ...]]] = {
    "a turn that is not stored": (
        (b":session_chat", SOURCE.encode()), forget, False, "turn",
        "the question is not among the active messages", ("answers-on-failure",),
    ),
    "a child that somebody closed first": (
        (b":session_patch", b"verified"), close_first, True, "close", "somebody closed it first, as …", (),
    ),
    "a title that another one overwrote": (
        (b":session_patch", b"reviewed"), retitle, False, "change", "the row has another title", (),
    ),
}  # fmt: skip
"""What: the message that it happens around, the change, whether before it, the point that fails, why, the quirks."""


@pytest.mark.requirement("checklist:fails", "checklist:redacted", "checklist:cleans-up")
@pytest.mark.parametrize("lie", LIES)
async def test_what_reads_show_instead_fails_the_point_in_our_own_words(tmp_path: Path, lie: str) -> None:
    words, change, before, failing, why, quirks = LIES[lie]
    async with lifecycle_site(tmp_path) as site:
        transport = MeddlingTransport(*words, change=lambda: change(site.endpoint.db), before=before)
        document = await verified(site, transport=transport)
        assert await site.rows() == {}
    point = next(point for point in document.points if point.id == failing)
    assert point.outcome == "fail"
    assert (point.reason or "").endswith(why), point.reason
    assert (document.verdict, point.quirks) == ("fail", quirks)
    assert [each.id for each in document.points if each.outcome == "fail"] == [failing]
    told = json.dumps(document.json_value())
    assert problems_of(told) == []
    assert found_in(told + markdown(document)) == set()


@pytest.mark.requirement("checklist:fails", "checklist:redacted")
async def test_a_row_that_comes_back_after_its_delete_fails_the_confirmation(tmp_path: Path) -> None:
    async with lifecycle_site(tmp_path) as site:
        transport = MeddlingTransport(b"approval_decision", change=lambda: resurrect(site.endpoint.db), before=False)
        document = await verified(site, reviewer_transport=transport)
        assert await site.rows() == {}
    point = document.points[12]
    assert (point.outcome, document.verdict) == ("fail", "fail")
    assert "there is a row under its id, with source …" in (point.reason or "")
    assert document.points[13].outcome == "pass"
    assert found_in(json.dumps(document.json_value()) + markdown(document)) == set()
