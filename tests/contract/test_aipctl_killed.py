"""`aipctl action call`, killed at twenty places on its way: what it sent is never without an id that somebody has."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.client_command import aipctl_environment
from tests.support.many_commands import running_commands
from tests.support.server_serving import serving, written_settings

KILLS = 20
CREATE = "cap:hermes_agent:primary:session_create"


async def actions_of(client: httpx.AsyncClient) -> set[str]:
    page = (await client.get("/aip/v1/actions?limit=200")).json()
    return {row["action_id"] for row in page["action_list"]["actions"]}


def told_in(folder: Path, number: int) -> str | None:
    found = re.search(r"^action id: (act_\S+)$", (folder / f"{number}.err").read_text(encoding="utf-8"), re.MULTILINE)
    return None if found is None else found[1]


@pytest.mark.requirement("aipctl:identity:killed-anywhere")
async def test_wherever_it_is_killed_the_id_of_what_it_sent_is_on_stderr_and_the_server_knows_or_never_received_it(
    tmp_path: Path,
) -> None:
    settings = written_settings(tmp_path / "aip")
    env = aipctl_environment({"GETAIP_NATIVE_BEARER_TOKEN": "requester-0123456789"})

    async with serving(settings) as (client, _):

        def call(number: int, **members: Any) -> dict[str, Any]:
            words = ["action", "call", str(client.base_url), CREATE, "--generate-key", "--input", '{"body":{"id":"s"}}']
            files = {"stdout": str(tmp_path / f"{number}.out"), "stderr": str(tmp_path / f"{number}.err")}
            return {"program": "aipctl", "words": words, **files, **members}

        async with running_commands([call(KILLS, count=str(tmp_path / "count"))], env=env) as whole:
            assert await whole.statuses() == [1]  # nobody listens where the endpoint should be
        steps = int((tmp_path / "count").read_text(encoding="ascii"))
        orders = [call(number, signal=signal.SIGKILL, step=max(1, steps * number // KILLS)) for number in range(KILLS)]
        async with running_commands(orders, env=env) as killed:
            assert set(await killed.statuses()) == {-signal.SIGKILL}

        known, told = await actions_of(client), [told_in(tmp_path, number) for number in range(KILLS)]
        states = [(await client.get(f"/aip/v1/actions/{action_id}")).json() for action_id in told if action_id]
    seen = Counter(answer["action_status"]["state"] for answer in states)
    assert known <= {*told, told_in(tmp_path, KILLS)}
    assert seen.keys() <= {"unknown", "running", "failed"}
    assert seen["unknown"] > 0
    assert seen["failed"] > 0
