"""The routes and `aipctl action reconcile`, from the command's process to the endpoint; and the page about it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes.contract.reconciliation import OUTCOMES
from aip_hermes.settings import Settings, render_template
from aip_hermes.settings.tables import ReconcileTable
from tests.support import client_answers as answers
from tests.support.client_command import aipctl_process, invoke_aipctl
from tests.support.client_stub_server import Answer, Request, running_stub
from tests.support.cutting_relay import Cut, CuttingRelay
from tests.support.embedded_endpoint import KEY, served
from tests.support.server_serving import envelope, serving, written_settings
from tests.support.server_site import make_site, write_secret, write_settings

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "after-an-uncertain-outcome.md"
ACTION = answers.ACTION_ID


@dataclass(frozen=True, kw_only=True)
class _Live:
    """client: of the requester. url: of the server."""

    client: httpx.AsyncClient
    relay: CuttingRelay
    url: str
    token: Path

    async def create(self, number: int, *, cut: Cut) -> str:
        """Submit a create whose answer is lost; return its Action ID."""
        action_id = f"act_{number:032x}"
        action = {
            "id": action_id,
            "capability_id": "cap:hermes_agent:primary:session_create",
            "idempotency_key": f"key-{number}",
            "input": {"body": {"id": f"lost-{number}"}},
        }
        self.relay.cut = cut
        answer = await self.client.post(
            "/aip/v1/messages", json=envelope({"action": action}, message_id=f"msg_{number}")
        )
        details = answer.json()["body"]["action_result"]["error"]["details"]
        assert details["uncertain_outcome"] is True
        return action_id

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Run `aipctl` beside the server; return exit code, stdout and stderr."""
        environment = {"GETAIP_NATIVE_BEARER_TOKEN_FILE": str(self.token)}
        async with aipctl_process(*arguments, env=environment) as process:
            out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def _live(folder: Path) -> AsyncIterator[_Live]:
    async with served(folder / "hermes") as hermes, CuttingRelay(str(hermes.client.base_url)) as relay:
        written_settings(folder)
        write_secret(folder / "hermes.key", KEY)
        text = render_template(port=0, endpoint_url=relay.url).replace("quiet_rows_s = 60", "quiet_rows_s = 0")
        settings = Settings.load(write_settings(folder / "aip-hermes.toml", text))
        assert settings.reconcile.rows_s == 0
        async with serving(settings) as (client, _):
            url = str(client.base_url).rstrip("/")
            yield _Live(client=client, relay=relay, url=url, token=folder / "tokens" / "requester")


@pytest.fixture(autouse=True)
def hermes_folder(tmp_path: Path) -> None:
    (tmp_path / "hermes").mkdir()


@pytest.mark.requirement("reconcile:routes", "reconcile:command", "reconcile:reads-only")
async def test_the_command_tells_what_the_endpoint_has(tmp_path: Path) -> None:
    async with _live(tmp_path) as live:
        there = await live.create(1, cut="mid_body")
        missing = await live.create(2, cut="before_sending")
        before = list(live.relay.mutations)
        code, out, err = await live.command("action", "reconcile", live.url, there)
        assert (code, json.loads(out)["reconciliation"]["verdict"]) == (0, "applied")
        assert "next: " in err
        code, out, err = await live.command("action", "reconcile", live.url, "--all-uncertain", "--endpoint", "primary")
        document = json.loads(out)
        told = {each["action_id"]: each["verdict"] for each in document["reconciliations"]}
        assert (code, told, document["failures"]) == (0, {missing: "not_applied"}, [])
        assert err.splitlines() == ["1 reconciled: 1 not applied"]
        code, out, err = await live.command("action", "reconcile", live.url, "--all-uncertain")
        assert (code, json.loads(out)["reconciliations"]) == (0, [])
        for outcome, wanted in (("uncertain", {there, missing}), ("unresolved", set())):
            code, out, _ = await live.command("action", "list", live.url, "--outcome", outcome)
            assert {each["action_id"] for each in json.loads(out)["action_list"]["actions"]} == wanted
        code, out, err = await live.command("action", "reconcile", live.url, "--all-uncertain", "--endpoint", "other")
        assert (code, json.loads(out)["reconciliations"]) == (0, [])
        stored = (await live.client.get(f"/aip/v1/actions/{missing}/reconciliation")).json()["reconciliation"]
        assert (stored["verdict"], stored["number"]) == ("not_applied", 1)
        assert live.relay.mutations == before


@pytest.mark.requirement("reconcile:page")
async def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 6
    async with _live(tmp_path) as live:
        action_id = await live.create(1, cut="before_headers")
        for command in commands:
            line = command.replace("$URL", live.url).replace("$ACTION_ID", action_id)
            name, *arguments = shlex.split(line)
            if name == "curl":
                answer = await live.client.get(arguments[-1])
                assert answer.json()["reconciliation"]["verdict"] == "applied"
                continue
            code, out, _ = await live.command(*arguments)
            assert (name, code) == ("aipctl", 0), command
            assert json.loads(out)


@pytest.mark.requirement("reconcile:page")
def test_the_page_names_every_verdict_and_every_setting() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in OUTCOMES if f"`{name}`" not in page] == []
    for name in ReconcileTable.model_fields:
        assert f"\n{name} = " in page
        assert re.search(rf"^(?:# )?{name} = ", render_template(), re.MULTILINE), name


def _verdict(outcome: str, **members: Any) -> dict[str, Any]:
    document = {"action_id": ACTION, "verdict": outcome, "explanation": "so it is", "next_step": "Go on.", **members}
    return {"reconciliation": document}


@pytest.mark.requirement("reconcile:command")
@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (_verdict("applied"), 0, "applied: so it is"),
        (_verdict("not_applied"), 0, "not applied: so it is"),
        (_verdict("partially_applied"), 0, "partially applied: so it is"),
        (_verdict("indeterminate", retry_after_ms=60_000), 4, "after 60 s: aipctl action reconcile"),
    ],
)
def test_one_verdict_has_its_exit_code(answer: dict[str, Any], code: int, said: str) -> None:
    with running_stub(lambda _: Answer(body=json.dumps(answer).encode())) as stub:
        done = invoke_aipctl("action", "reconcile", stub.url, ACTION)
    assert (done.exit_code, json.loads(done.stdout)) == (code, answer)
    assert said in done.stderr


@pytest.mark.requirement("reconcile:command")
@pytest.mark.parametrize(
    ("second", "code"), [(_verdict("indeterminate"), 4), (None, 1)], ids=["still unknown", "of somebody else"]
)
def test_all_verdicts_come_out_whatever_one_of_them_is(second: dict[str, Any] | None, code: int) -> None:
    def answer(request: Request) -> Answer:
        if request.method == "GET":
            actions = [{"action_id": f"act_{number}", "state": "failed"} for number in (1, 2)]
            return Answer(body=json.dumps({"action_list": {"actions": actions, "total_size": 2}}).encode())
        if "act_1" in request.path:
            return Answer(body=json.dumps(_verdict("applied")).encode())
        if second is None:
            return answers.refused("auth.not_authorized", "auth", 401, "the action belongs to another principal")
        return Answer(body=json.dumps(second).encode())

    with running_stub(answer) as stub:
        done = invoke_aipctl("action", "reconcile", stub.url, "--all-uncertain")
    document = json.loads(done.stdout)
    assert done.exit_code == code
    assert len(document["reconciliations"]) + len(document["failures"]) == 2


@pytest.mark.requirement("reconcile:command")
@pytest.mark.parametrize(
    "arguments", [[], [ACTION, "--all-uncertain"], [ACTION, "--endpoint", "primary"], ["not an id", "--all-uncertain"]]
)
def test_a_wrong_use_sends_nothing(arguments: list[str]) -> None:
    with running_stub(lambda _: Answer()) as stub:
        done = invoke_aipctl("action", "reconcile", stub.url, *arguments)
    assert (done.exit_code, done.stdout, stub.requests) == (2, "", [])


@pytest.mark.requirement("reconcile:command")
def test_a_lost_verdict_is_no_unknown_outcome() -> None:
    with running_stub(lambda _: Answer(fate="cut")) as stub:
        done = invoke_aipctl("action", "reconcile", stub.url, ACTION)
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.mark.requirement("reconcile:routes")
@pytest.mark.parametrize(
    ("content", "status"), [(b"", 200), (b"{}", 200), (b'{"force": true}', 400), (b"[]", 400), (b"{", 400)]
)
async def test_a_body_that_says_anything_is_refused(content: bytes, status: int, tmp_path: Path) -> None:
    site = make_site(tmp_path)
    headers = {**site.bearer(), "content-type": "application/json"}
    answer = await site.client.post("/aip/v1/actions/act_1/reconcile", content=content, headers=headers)
    assert answer.status_code == status
    assert ("reconcile" in [name for name, _ in site.runtime.asked]) == (status == 200)
    await site.client.aclose()


@pytest.mark.requirement("reconcile:routes", "reconcile:access")
async def test_a_foreign_tenant_learns_nothing_and_nobody_is_refused_a_bearer(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    for who, status, code in (("stranger", 400, "action.not_found"), (None, 401, "auth.native_http_unauthorized")):
        headers = {} if who is None else site.bearer(who)
        answer = await site.client.post("/aip/v1/actions/act_1/reconcile", headers=headers)
        assert (answer.status_code, answer.json()["body"]["error"]["error"]["code"]) == (status, code)
    await site.client.aclose()
