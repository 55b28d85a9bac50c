"""The operations of the matrix of faults: what each addresses, sends and leaves at the endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.support.fault_site import FaultSite

__all__ = ["OPERATIONS", "Cell", "Kind"]

_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The things of one cell: no two share any. job_id, response_id: chosen by the endpoint, where it needs one."""

    site: FaultSite
    name: str
    job_id: str = ""
    messages: int = 2

    @property
    def source(self) -> str:
        return f"{self.name}-s"

    @property
    def asked(self) -> str:
        """What a turn says: nobody else's words."""
        return f"{self.name}: What is verified?"

    @property
    def made(self) -> str:
        return f"{self.name}-new"

    @classmethod
    async def arranged(cls, site: FaultSite, *, turns: int = 1, with_job: bool = False) -> Cell:
        """Put the source, with an earlier turn, and a job where one is addressed."""
        cell = cls(site=site, name=f"c{next(_numbers)}", messages=2 * turns)
        await site.hermes.create(cell.source, title=f"{cell.name}, first")
        for turn in range(turns):
            assert (await site.hermes.chat(cell.source, f"Earlier question {turn}")).status_code == 200
        if not with_job:
            return cell
        job = {"name": cell.name, "schedule": "0 3 1 1 *", "prompt": "Summarise the year."}
        made = await site.hermes.client.post("/api/jobs", json=job)
        return cls(site=site, name=cell.name, messages=cell.messages, job_id=made.json()["job"]["id"])

    async def row(self, session_id: str) -> dict[str, Any] | None:
        answer = await self.site.hermes.client.get(f"/api/sessions/{session_id}")
        return answer.json()["session"] if answer.status_code == 200 else None

    async def job(self) -> dict[str, Any] | None:
        answer = await self.site.hermes.client.get(f"/api/jobs/{self.job_id}")
        return answer.json()["job"] if answer.status_code == 200 else None

    async def said(self, session_id: str) -> list[str]:
        """Return the texts of users among the active messages."""
        _, rows = await self.site.hermes.messages(session_id)
        return [row["content"] for row in rows if row["role"] == "user"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One operation. fault: its name at the endpoint. happened: whether its effect is there."""

    fault: str
    values: Callable[[Cell], Mapping[str, Any]]
    happened: Callable[[Cell], Awaitable[bool]]
    with_job: bool = False


async def _created(cell: Cell) -> bool:
    return await cell.row(cell.made) is not None


async def _patched(cell: Cell) -> bool:
    row = await cell.row(cell.source)
    return row is not None and row["title"] == f"{cell.name}, renamed"


async def _deleted(cell: Cell) -> bool:
    return await cell.row(cell.source) is None


async def _forked(cell: Cell) -> bool:
    row = await cell.row(cell.made)
    return row is not None and row["parent_session_id"] == cell.source


async def _replied(cell: Cell) -> bool:
    """Whether the turn is stored to its end, in the session or in what continues it."""
    _, rows = await cell.site.hermes.messages(cell.source)
    return len(rows) >= 2 and rows[-2]["content"] == cell.asked and rows[-1]["role"] == "assistant"


async def _asked_run(cell: Cell) -> bool:
    row = await cell.row(cell.made)
    return row is not None and cell.asked in await cell.said(cell.made)


async def _responded(cell: Cell) -> bool:
    listed = await cell.site.hermes.client.get("/api/sessions", params={"limit": 5})
    for row in listed.json()["data"]:
        if cell.asked in await cell.said(row["id"]):
            return bool(row["message_count"] == 2)
    return False


async def _job_made(cell: Cell) -> bool:
    jobs = (await cell.site.hermes.client.get("/api/jobs", params={"include_disabled": "true"})).json()["jobs"]
    return any(job["name"] == f"{cell.name}, made" for job in jobs)


async def _job_changed(cell: Cell) -> bool:
    job = await cell.job()
    return job is not None and job["name"] == f"{cell.name}, changed"


async def _job_gone(cell: Cell) -> bool:
    return await cell.job() is None


async def _job_paused(cell: Cell) -> bool:
    job = await cell.job()
    return job is not None and job["state"] == "paused"


def _turn(cell: Cell) -> Mapping[str, Any]:
    return {"session_id": cell.source, "message": cell.asked}


OPERATIONS: Mapping[str, Kind] = {
    "session_create": Kind(
        fault="session_create", values=lambda c: {"body": {"id": c.made, "title": f"{c.name}, new"}}, happened=_created
    ),
    "session_patch": Kind(
        fault="session_update",
        values=lambda c: {"session_id": c.source, "title": f"{c.name}, renamed"},
        happened=_patched,
    ),
    "session_delete": Kind(fault="session_delete", values=lambda c: {"session_id": c.source}, happened=_deleted),
    "session_fork": Kind(
        fault="session_fork",
        values=lambda c: {"session_id": c.source, "body": {"id": c.made, "title": f"{c.name}, child"}},
        happened=_forked,
    ),
    "session_chat": Kind(fault="session_chat", values=_turn, happened=_replied),
    "session_chat_stream": Kind(fault="session_chat_stream", values=_turn, happened=_replied),
    "chat": Kind(
        fault="chat_completions", values=lambda c: {"session_id": c.source, "prompt": c.asked}, happened=_replied
    ),
    "chat_stream": Kind(
        fault="chat_completions",
        values=lambda c: {"session_id": c.source, "messages": [{"role": "user", "content": c.asked}]},
        happened=_replied,
    ),
    "run_start": Kind(fault="runs", values=lambda c: {"session_id": c.made, "input": c.asked}, happened=_asked_run),
    "responses": Kind(fault="responses", values=lambda c: {"input": c.asked}, happened=_responded),
    "responses_stream": Kind(fault="responses", values=lambda c: {"input": c.asked}, happened=_responded),
    "job_create": Kind(
        fault="job_create",
        values=lambda c: {"name": f"{c.name}, made", "schedule": "0 3 1 1 *", "prompt": "Summarise."},
        happened=_job_made,
    ),
    "job_update": Kind(
        fault="job_update",
        values=lambda c: {"job_id": c.job_id, "name": f"{c.name}, changed"},
        happened=_job_changed,
        with_job=True,
    ),
    "job_delete": Kind(fault="job_delete", values=lambda c: {"job_id": c.job_id}, happened=_job_gone, with_job=True),
    "job_pause": Kind(fault="job_pause", values=lambda c: {"job_id": c.job_id}, happened=_job_paused, with_job=True),
}
