"""Every published operation once against a real hermes-agent, through a runtime, and what it makes of failures."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.real.model import Answer
from tests.real.site import OPERATIONS, Site

pytestmark = pytest.mark.real

JOB = {"schedule": "0 3 1 1 *", "prompt": "Summarise the year."}
DANGEROUS = Answer(calls=[("terminal", {"command": "rm -rf ./what-is-not-there"})])
"""A call that nobody lets happen: it waits for an approval, which is denied."""


@pytest.mark.requirement("real:operations")
async def test_every_operation_is_accepted_and_answered_as_published(site: Site) -> None:
    for read in ("health", "health_detailed", "models", "capabilities", "skills", "toolsets"):
        await site.output(read)
    await _sessions(site)
    await _answers_of_v1(site)
    await _runs(site)
    await _jobs(site)
    assert set(OPERATIONS) - site.done == set()


async def _sessions(site: Site) -> None:
    source = site.named("source")
    await site.output("session_create", body={"id": source, "title": site.named("Source")})
    said = await site.output("session_chat", session_id=source, message="What is verified?")
    assert said["message"]["content"] == "You said: What is verified?"
    assert said["_aip"]["turn"] == {"messages_before": 0, "messages_after": 2, "persisted": "yes"}
    streamed = await site.output("session_chat_stream", session_id=source, message="And what else?")
    assert (streamed["text"], streamed["terminal"]) == ("You said: And what else?", True)
    listed = await site.output("sessions_list", limit=50)
    assert source in {row["id"] for row in listed["data"]}
    read = await site.output("session_messages", session_id=source)
    assert [row["role"] for row in read["data"]] == ["user", "assistant"] * 2
    renamed = await site.output("session_patch", session_id=source, title=site.named("Renamed"))
    assert renamed["session"]["title"] == site.named("Renamed")
    forked = await site.output("session_fork", session_id=source, body={"id": site.named("fork")})
    assert forked["session"]["parent_session_id"] == source
    closed = await site.output("session_get", session_id=source)
    assert (closed["session"]["end_reason"], closed["session"]["message_count"]) == ("branched", 4)
    await site.output("session_delete", session_id=source)
    assert await site.rows.row(source) is None


async def _answers_of_v1(site: Site) -> None:
    session = site.named("fork")
    await site.output("chat", session_id=session, prompt="By completions.")
    await site.output("chat_stream", session_id=session, messages=[{"role": "user", "content": "Streamed."}])
    response = await site.output("responses", input="By responses.")
    await site.output("responses_stream", input="Streamed responses.")
    again = await site.output("response_get", response_id=response["id"])
    assert again["output"] == response["output"]
    await site.output("response_delete", response_id=response["id"])


async def _runs(site: Site) -> None:
    model = site.hermes.model
    run = (await site.output("run_start", session_id=site.named("run"), input="By a run."))["run_id"]
    events = await site.output("run_events", run_id=run)
    assert events["terminal"] is True
    assert (await site.output("run_status", run_id=run))["status"] == "completed"
    model.next.extend([DANGEROUS, Answer(text="It was denied.")])
    asking = (await site.output("run_start", session_id=site.named("asks"), input="Remove it."))["run_id"]
    await site.reached(asking, "waiting_for_approval")
    assert (await site.output("run_approval", run_id=asking, choice="deny"))["resolved"] == 1
    await site.reached(asking, "completed")
    gate = threading.Event()
    model.next.append(Answer(text="Never read.", until=gate))
    try:
        slow = (await site.output("run_start", session_id=site.named("slow"), input="Wait."))["run_id"]
        assert await asyncio.to_thread(model.waiting.acquire, timeout=30)
        assert (await site.output("run_stop", run_id=slow))["status"] == "stopping"
        await site.reached(slow, "cancelled")
    finally:
        gate.set()
    operated = await site.output("operator", objective="Check the backups.", constraints={"read_only": True})
    assert operated["status"] == "completed"


async def _jobs(site: Site) -> None:
    job = (await site.output("job_create", name=site.named("job"), **JOB))["job"]["id"]
    listed = await site.output("jobs_list", include_disabled=True)
    assert job in {each["id"] for each in listed["jobs"]}
    assert (await site.output("job_update", job_id=job, name="Changed"))["job"]["name"] == "Changed"
    await site.output("job_pause", job_id=job)
    assert (await site.output("job_get", job_id=job))["job"]["state"] == "paused"
    await site.output("job_resume", job_id=job)
    await site.output("job_run", job_id=job)
    await site.output("job_delete", job_id=job)
