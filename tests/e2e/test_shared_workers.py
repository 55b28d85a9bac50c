"""Several server processes on one PostgreSQL: one key, one decision, one session at a time, and a worker that dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.test_key_race import EACH, racer
from tests.support.counting_hermes import running_provider
from tests.support.embedded_endpoint import KEY, GatedModel, served
from tests.support.key_race import SESSION
from tests.support.processes import start, stop
from tests.support.server_serving import REQUESTER, envelope, written_settings


@dataclass(frozen=True, kw_only=True)
class Worker:
    url: str
    pid: int


@contextmanager
def workers(
    folder: Path, dsn: str, *, endpoint_url: str, endpoint_key: str = "hermes-key-0123456789", number: int = 2
) -> Iterator[list[Worker]]:
    """Run server processes that share one store; those that still run are stopped at the end."""
    with ExitStack() as stack:
        found = []
        for name in range(number):
            place = folder / f"worker-{name}"
            place.mkdir()
            written_settings(place, endpoint_url=endpoint_url, endpoint_key=endpoint_key, store=dsn)
            process = start(["serve", "--config", str(place / "aip-hermes.toml")], log=place / "server.log")
            stack.callback(stop, process)
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (place / "server.log").read_text(encoding="utf-8")
            found.append(Worker(url=json.loads(line)["aip_url"], pid=process.pid))
        yield found


@pytest.mark.requirement("shared:one-send")
def test_twenty_submissions_over_two_workers_make_one_session(tmp_path: Path, postgres_dsn: str) -> None:
    with (
        running_provider(tmp_path) as provider,
        workers(tmp_path, postgres_dsn, endpoint_url=provider.url) as (one, other),
        racer(one.url, "race") as first,
        racer(other.url, "race") as second,
    ):
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told: list[dict[str, Any]] = []
        for process in (first, second):
            assert process.stdout is not None
            told += json.loads(process.stdout.readline())["told"]
        assert provider.seen(SESSION) == 1
    assert len(told) == 2 * EACH
    assert {(each["status"], each["session"], each["code"]) for each in told} == {("completed", SESSION, None)}
    assert len({each["action_id"] for each in told}) == 1


def turn(action_id: str, *, session_id: str = "s", mode: str = "sync") -> dict[str, Any]:
    """Return an envelope with a turn."""
    body = {
        "id": action_id,
        "capability_id": "cap:hermes_agent:primary:session_chat",
        "input": {"session_id": session_id, "message": action_id},
        "mode": mode,
    }
    return envelope({"action": body}, message_id=f"msg_{action_id}")


async def result_of(url: str, action_id: str) -> dict[str, Any]:
    """Return the terminal result of an action, asked of one worker; it may take until a lease has ended."""
    async with httpx.AsyncClient(base_url=url, headers=REQUESTER, trust_env=False, timeout=60) as client:
        for _ in range(3):
            reply = await client.get(f"/aip/v1/actions/{action_id}/result", params={"wait_ms": 30_000})
            if reply.status_code == 200:
                break
        found: dict[str, Any] = reply.json()["action_result"]
        return found


async def post(url: str, message: dict[str, Any], *, path: str = "/aip/v1/messages") -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=url, headers=REQUESTER, trust_env=False, timeout=60) as client:
        body: dict[str, Any] = (await client.post(path, json=message)).json()["body"]
        return body


@pytest.mark.requirement("shared:one-turn", "shared:cancel")
async def test_turns_of_one_session_follow_each_other_over_two_workers_and_either_cancels(
    tmp_path: Path, postgres_dsn: str
) -> None:
    model = GatedModel()
    async with served(tmp_path / "hermes", model=model) as hermes:
        await hermes.create("s")
        url = str(hermes.client.base_url)
        with workers(tmp_path, postgres_dsn, endpoint_url=url, endpoint_key=KEY) as (one, other):
            first = asyncio.create_task(post(one.url, turn("act_first")))
            async with asyncio.timeout(30):
                await model.asked.wait()
            second = asyncio.create_task(post(other.url, turn("act_second")))
            refused = await post(other.url, {}, path="/aip/v1/actions/act_first/cancel")
            model.gate.set()
            answers = await asyncio.gather(first, second)
    assert refused["error"]["error"]["code"] == "action.cancel_unsupported"
    assert [answer["action_result"]["status"] for answer in answers] == ["completed", "completed"]
    assert [request.messages[-1]["content"] for request in model.requests] == ["act_first", "act_second"]


@pytest.mark.requirement("shared:takeover")
async def test_what_a_killed_worker_had_claimed_is_definite_soon_and_what_waited_is_done_by_another(
    tmp_path: Path, postgres_dsn: str
) -> None:
    model = GatedModel()
    async with served(tmp_path / "hermes", model=model) as hermes:
        for session_id in ("s", "t"):
            await hermes.create(session_id)
        url = str(hermes.client.base_url)
        with workers(tmp_path, postgres_dsn, endpoint_url=url, endpoint_key=KEY) as (one, other):
            lost = asyncio.create_task(post(one.url, turn("act_lost")))
            async with asyncio.timeout(30):
                await model.asked.wait()
            os.kill(one.pid, signal.SIGKILL)
            with pytest.raises(httpx.HTTPError):
                await lost
            model.gate.set()
            assert (await post(other.url, turn("act_waits", session_id="t", mode="async")))["ack"]["status"]
            done = await result_of(other.url, "act_waits")
            ended = await result_of(other.url, "act_lost")
    assert done["status"] == "completed"
    assert (ended["status"], ended["error"]["details"]["uncertain_outcome"]) == ("failed", True)
    assert [request.messages[-1]["content"] for request in model.requests].count("act_lost") == 1
