"""Any JSON in any member: an answer that says what is wrong, never a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.embedded_endpoint import endpoint

ODD: list[Any] = [
    None, True, 0, -1, 5, 10**400, 1e999, float("nan"), "", " ", "x", "\ud83d", "\0", [], {}, [None], [[]], [{}],
    ["\ud83d"],
    [{"role": []}], [{"role": "user"}], [{"role": "user", "content": {}}], [{"role": "user", "content": [{}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": []}]}], {"id": "x"}, [{"content": ["x"]}],
    [{"role": "system", "content": [5]}, {"role": "user", "content": "x"}], "x" * 70_000,
]  # fmt: skip
MESSAGES = {"messages": [{"role": "user", "content": "x"}]}
INPUT = {"input": "x"}
INPUT_MEMBERS = (
    "input", "model", "instructions", "previous_response_id", "conversation", "store", "stream", "truncation",
    "conversation_history", "session_id",
)  # fmt: skip
ROUTES = [
    ("/v1/chat/completions", MESSAGES, ("messages", "model", "stream", "tools", "temperature")),
    ("/v1/responses", INPUT, INPUT_MEMBERS),
    ("/v1/runs", INPUT, INPUT_MEMBERS),
    ("/v1/runs/{run_id}/approval", {"choice": "once"}, ("choice", "all")),
    ("/api/sessions/s/chat/stream", {"message": "x"}, ("message", "input", "system_message", "instructions")),
    ("/api/jobs", {"name": "n", "schedule": "30m"}, ("name", "schedule", "prompt", "deliver", "skills", "repeat")),
]


@pytest.mark.parametrize(("path", "body", "members"), ROUTES, ids=[route[0] for route in ROUTES])
@pytest.mark.requirement("embedded:routes:any-json")
async def test_odd_values_are_taken_or_refused(
    tmp_path: Path, path: str, body: dict[str, Any], members: tuple[str, ...]
) -> None:
    async with endpoint(tmp_path, max_concurrent_runs=0) as hermes:
        await hermes.create("s")
        run_id = (await hermes.client.post("/v1/runs", json=INPUT)).json()["run_id"]
        key = {"Idempotency-Key": "k"}
        for member in members:
            for value in ODD:
                content = json.dumps(body | {member: value}).encode("ascii")
                answer = await hermes.client.post(path.format(run_id=run_id), content=content, headers=key)
                assert answer.status_code < 500, (member, value, answer.text)
                assert answer.headers["content-type"].startswith(("application/json", "text/event-stream"))
                if answer.headers["content-type"].startswith("text/event-stream"):
                    assert "Internal server error" not in answer.text
                if answer.status_code == 202:
                    told = await hermes.client.get(f"/v1/runs/{answer.json()['run_id']}/events")
                    assert "run.completed" in told.text, (member, value, told.text)
        for content in (b"", b"{", b"[]", b"5", b"null", b"[" * 100_000, b'{"a":', b"\xff"):
            assert (await hermes.client.post(path.format(run_id=run_id), content=content)).status_code == 400


@pytest.mark.requirement("embedded:routes:any-json")
async def test_a_change_of_a_job_takes_or_refuses_odd_values(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        job = (await hermes.client.post("/api/jobs", json={"name": "n", "schedule": "30m"})).json()["job"]
        path = f"/api/jobs/{job['id']}"
        for member in ("name", "schedule", "prompt", "deliver", "skills", "skill", "repeat", "enabled"):
            for value in ODD:
                answer = await hermes.client.patch(path, content=json.dumps({member: value}).encode("ascii"))
                assert answer.status_code in (200, 400), (member, value, answer.text)
        assert (await hermes.client.get(path)).status_code == 200
