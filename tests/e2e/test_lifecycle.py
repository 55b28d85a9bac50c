"""The lifecycle over real HTTP between real processes, watched from outside: bytes, logs, quirks, kills."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.cli.children import Child
from aip_hermes.cli.demo.relay import Relay
from aip_hermes.cli.demo.walk import CHILD_TEXT, SYSTEM_PROMPT, TURN_TEXT, Stage, Step, Walk
from aip_hermes.cli.home import REQUESTER, REVIEWER, Home, authority_entry, make_home
from aip_hermes.client import AipConnection
from aip_hermes.embedded import QUIRKS
from aip_hermes.ids import ActionId, CapabilityId, IdempotencyKey
from aip_hermes.ports import new_id
from aip_hermes.secret import Secret, read_secret_file
from aip_hermes.settings import render_template


class Watched(httpx.AsyncBaseTransport):
    """A real transport that checks every AIP object that comes by against its schema."""

    def __init__(self) -> None:
        self._real = httpx.AsyncHTTPTransport()
        self.kinds: set[str] = set()
        self.violations: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._real.handle_async_request(request)
        content = await response.aread()
        self._check(request.url.path, json.loads(content))
        return httpx.Response(response.status_code, headers=response.headers, content=content)

    def _check(self, path: str, raw: dict[str, Any]) -> None:
        if "aip_version" in raw:
            kind, found = next(iter(raw["body"])), wire.envelope_violations(raw)
        elif path.endswith("/capabilities"):
            kind, found = (
                "capability",
                [
                    text
                    for one in raw["capabilities"]
                    for text in wire.schema_violations("capability", one["capability"])
                ],
            )
        elif len(raw) == 1:
            kind, body = next(iter(raw.items()))
            found = wire.schema_violations(kind, body)
        else:
            return
        self.kinds.add(kind)
        self.violations += [f"{path}: {kind}: {text}" for text in found]

    async def aclose(self) -> None:
        """Close; the next request opens again, since connections share this transport over restarts."""
        await self._real.aclose()
        self._real = httpx.AsyncHTTPTransport()


class Site:
    """An embedded Hermes, a relay and an AIP server that can be killed and started again on the same data."""

    def __init__(self, folder: Path, relay: Relay, home: Home, hermes: Child, server: Child) -> None:
        self.folder, self.relay, self.home, self.hermes, self.server = folder, relay, home, hermes, server
        self.watched = Watched()
        self._open: list[AipConnection] = []

    def connection(self, token: Secret) -> AipConnection:
        connection = AipConnection(base_url=str(self.server.ready["aip_url"]), token=token, transport=self.watched)
        self._open.append(connection)
        return connection

    async def close_connections(self) -> None:
        while self._open:
            await self._open.pop().aclose()

    def stage(self) -> Stage:
        return Stage(
            requester=self.connection(read_secret_file(self.home.requester_token)),
            reviewer=self.connection(read_secret_file(self.home.reviewer_token)),
            stranger=self.connection(read_secret_file(self.folder / "stranger")),
            forger=self.connection(Secret("a-token-that-nobody-gave-out")),
            relay=self.relay,
        )

    async def kill_and_restart(self) -> None:
        """SIGKILL the AIP server and start it again."""
        await self.close_connections()
        os.kill(self.server.pid, signal.SIGKILL)
        await self.server.wait()
        self.server = await start_server(self.home, self.folder)


async def start_server(home: Home, folder: Path) -> Child:
    with (folder / "server.log").open("ab") as log:
        return await Child.start("server", ["serve", "--config", str(home.settings), "--port", "0"], log=log)


@asynccontextmanager
async def site(folder: Path, *quirks: str) -> AsyncIterator[Site]:
    home = make_home(folder)
    arguments = ["hermes", "--data", str(home.hermes), "--port", "0"]
    arguments += [word for quirk in quirks for word in ("--quirk", quirk)]
    with (folder / "hermes.log").open("ab") as log:
        hermes = await Child.start("hermes", arguments, log=log)
    try:
        async with Relay(str(hermes.ready["hermes_url"])) as relay:
            write_settings(home, relay.url)
            here = Site(folder, relay, home, hermes, await start_server(home, folder))
            try:
                yield here
            finally:
                await here.close_connections()
                await here.server.stop()
    finally:
        await hermes.stop()


def write_settings(home: Home, endpoint_url: str) -> None:
    stranger = home.folder / "stranger"
    stranger.write_text("the-token-of-another-tenant", encoding="utf-8")
    stranger.chmod(0o600)
    entries = [authority_entry(REVIEWER), authority_entry(REQUESTER)]
    home.authority.write_text(json.dumps(entries), encoding="utf-8")
    table = '\n[[tokens]]\nfile = "stranger"\nprincipal = "agent:elsewhere:one"\ntenant = "elsewhere"\n'
    text = render_template(port=0, endpoint_url=endpoint_url, key_file="hermes/key")
    home.settings.write_text(text + table, encoding="utf-8")
    home.settings.chmod(0o600)


def failures(steps: list[Step]) -> list[str]:
    return [f"{step.number}: {step.failure}" for step in steps if step.failure]


@pytest.mark.requirement("demo:walk:verified", "wire:emitted:valid", "logs:clean")
async def test_everything_emitted_validates_and_the_logs_stay_clean(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        walk = Walk(here.stage())
        assert failures(await walk.run(lambda _: None)) == []
        secrets = [
            file.read_text(encoding="utf-8").strip()
            for file in (here.home.requester_token, here.home.reviewer_token, here.home.hermes_key)
        ]
    assert here.watched.violations == []
    assert {"action_result", "error", "event_stream", "approval_record_view", "capability"} <= here.watched.kinds
    logs = (tmp_path / "server.log").read_text(encoding="utf-8") + (tmp_path / "hermes.log").read_text(encoding="utf-8")
    assert "action" in logs
    planted = [*secrets, "the-token-of-another-tenant", TURN_TEXT, CHILD_TEXT, SYSTEM_PROMPT, walk.session_key]
    assert [text for text in planted if text in logs] == []


@pytest.mark.requirement("quirks:survived")
@pytest.mark.parametrize("quirk", sorted(QUIRKS))
async def test_the_walk_holds_with_each_quirk_and_says_what_it_saw(tmp_path: Path, quirk: str) -> None:
    async with site(tmp_path, quirk) as here:
        steps = await Walk(here.stage()).run(lambda _: None)
    assert failures(steps) == []
    notes = [note for step in steps for note in step.notes]
    assert len(notes) == (1 if quirk == "fork-child-resolves" else 0)


@pytest.mark.requirement("quirks:survived")
@pytest.mark.parametrize(("quirks", "state"), [(("fork-not-atomic",), "partial"), ((), "none")])
async def test_a_half_fork_is_uncertain_and_carries_its_evidence(
    tmp_path: Path, quirks: tuple[str, ...], state: str
) -> None:
    async with site(tmp_path, *quirks) as here:
        requester = here.stage().requester
        for identity, title in (("taken", "Taken"), ("source", "Source")):
            await call(requester, "session_create", {"body": {"id": identity, "title": title}})
        fork = {"session_id": "source", "body": {"id": "child", "title": "Taken"}}
        answer = await call(requester, "session_fork", fork, key="fork-1")
        assert answer["status"] == "failed"
        details = answer["error"]["details"]
        assert details["provider"]["code"] == "invalid_title"
        assert details["uncertain_outcome"] is True
        assert details["reconciliation"]["fork"]["state"] == state
        before = len(here.relay.seen)
        again = await call(requester, "session_fork", {**fork, "body": {"id": "child", "title": "Free"}}, key="fork-1")
        assert again["error"]["code"] == answer["error"]["code"]
        assert again["output"]["idempotent_replay"] is True
        assert len(here.relay.seen) == before


async def call(
    connection: AipConnection, operation: str, input: dict[str, Any], *, key: str | None = None
) -> dict[str, Any]:
    reply = await connection.call(
        CapabilityId(f"cap:hermes_agent:primary:{operation}"),
        input,
        action_id=ActionId(new_id("act_")),
        idempotency_key=IdempotencyKey(key or new_id("key_")),
    )
    assert reply.result is not None
    return reply.result


@pytest.mark.requirement("turns:async", "turns:streamed")
@pytest.mark.parametrize("operation", ["session_chat", "session_chat_stream"])
async def test_a_turn_runs_on_its_own_and_its_end_is_kept(tmp_path: Path, operation: str) -> None:
    async with site(tmp_path) as here:
        requester = here.stage().requester
        await call(requester, "session_create", {"body": {"id": "case", "title": "Case"}})
        action_id = ActionId(new_id("act_"))
        reply = await requester.call(
            CapabilityId(f"cap:hermes_agent:primary:{operation}"),
            {"session_id": "case", "message": "What is verified?"},
            action_id=action_id,
            mode="async",
        )
        assert (reply.body_key, reply.outcome) == ("ack", "pending")
        async with asyncio.timeout(30):
            while (status := (await requester.status(action_id))["action_status"])["state"] in ("queued", "running"):
                pass
        assert status["state"] == "completed", await requester.result(action_id)
        output = (await requester.result(action_id))["action_result"]["output"]
        assert output["_aip"]["turn"]["persisted"] == "yes"
        rows = (await call(requester, "session_messages", {"session_id": "case"}))["output"]["data"]
        assert [row["role"] for row in rows] == ["user", "assistant"]
        if operation == "session_chat_stream":
            chunks = await requester.get(
                f"/aip/v1/actions/{action_id}/chunks", {"limit": 1000}, expected="action_events"
            )
            kinds = [chunk["kind"] for chunk in chunks["action_events"]["chunks"]]
            assert kinds[-1] == "done"
            assert output["text"] == rows[1]["content"]
    assert here.watched.violations == []


@pytest.mark.requirement("restart:nothing-settled-lost")
async def test_a_kill_behind_any_settled_step_loses_nothing(tmp_path: Path) -> None:
    """Each settled action is asked for after the kill: same result by id, and by key without another send."""
    mutations: list[tuple[str, dict[str, Any]]] = [
        ("session_create", {"body": {"id": "case", "title": "Case"}}),
        ("session_chat", {"session_id": "case", "message": "What is verified?"}),
        ("session_patch", {"session_id": "case", "title": "Case, reviewed"}),
        ("session_fork", {"session_id": "case", "body": {"id": "child", "title": "Child"}}),
        ("session_chat", {"session_id": "child", "message": "And otherwise?"}),
        ("session_patch", {"session_id": "child", "end_reason": "closed"}),
        ("session_delete", {"session_id": "child"}),
    ]
    async with site(tmp_path) as here:
        for number, (operation, input) in enumerate(mutations):
            requester = here.stage().requester
            result = await call(requester, operation, input, key=f"key-{number}")
            expected = "pending_approval" if operation == "session_delete" else "completed"
            assert result["status"] == expected, result
            await here.kill_and_restart()
            requester = here.stage().requester
            sent = len(here.relay.seen)
            replayed = await call(requester, operation, input, key=f"key-{number}")
            assert replayed["action_id"] == result["action_id"]
            assert replayed["status"] == expected
            assert len(here.relay.seen) == sent
            status = (await requester.status(ActionId(result["action_id"])))["action_status"]
            assert status["state"] == expected
        await decide_after_a_kill(here, result)


async def decide_after_a_kill(here: Site, pending: dict[str, Any]) -> None:
    reviewer = here.stage().reviewer
    await reviewer.decide(pending["output"]["approval_id"], decision="approved", reason="no longer needed")
    await here.kill_and_restart()
    requester = here.stage().requester
    result = (await requester.result(ActionId(pending["action_id"])))["action_result"]
    assert result["status"] == "completed"
    assert [seen.method for seen in here.relay.seen].count("DELETE") == 1
    record = (await here.stage().reviewer.approval(pending["output"]["approval_id"]))["approval_record_view"]
    assert record["status"] == "approved"
