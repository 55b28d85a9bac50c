"""The composed server over real HTTP: entry points, readiness, a client that leaves, stopping, refusals."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from aip_hermes import wire
from aip_hermes.app import CannotServe, build_app, serve
from aip_hermes.database import OwnerLock
from aip_hermes.ports import SystemClock
from aip_hermes.settings import Settings, render_template
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_site import write_secret, write_settings

REQUESTER = {"authorization": "Bearer requester-0123456789"}
AUTHORITY = [
    {
        "principal_id": "human:local:reviewer",
        "tenant_id": "local",
        "roles": [],
        "groups": [],
        "tenant_policies": ["hermes-session-approval"],
        "external_systems": [],
        "delegated_scopes": [],
        "revision": 1,
        "revoked": False,
    }
]


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


def written(folder: Path, *, endpoint_url: str = "http://127.0.0.1:9/", port: int = 0) -> Settings:
    write_secret(folder / "hermes.key", "hermes-key-0123456789")
    write_secret(folder / "tokens" / "requester", "requester-0123456789")
    write_secret(folder / "tokens" / "reviewer", "reviewer-0123456789")
    (folder / "approval-authority.json").write_text(json.dumps(AUTHORITY), encoding="utf-8")
    text = render_template(port=port, endpoint_url=endpoint_url)
    return Settings.load(write_settings(folder / "aip-hermes.toml", text))


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Event]]:
    """Serve in this process until the block ends or the event is set."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, on_ready=ready.set_result, stop=stop))
    try:
        async with asyncio.timeout(10):
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        async with httpx.AsyncClient(base_url=ready.result(), headers=REQUESTER, trust_env=False) as client:
            yield client, stop
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await task


def read_session(action_id: str) -> dict[str, Any]:
    return {
        "aip_version": "1.0",
        "message_type": "aip.core.v1.action",
        "message_id": f"msg_{action_id}",
        "sent_at": wire.rfc3339(SystemClock().now_ms()),
        "body": {
            "action": {
                "id": action_id,
                "capability_id": "cap:hermes_agent:primary:session_get",
                "input": {"session_id": "s"},
                "mode": "sync",
            }
        },
    }


@pytest.mark.requirement("app:connectors:entry-points", "app:serve:ready", "server:wire:schemas")
async def test_a_served_action_reaches_the_endpoint_and_comes_back(tmp_path: Path) -> None:
    async with GatedEndpoint().running() as endpoint:
        endpoint.gate.set()
        async with serving(written(tmp_path, endpoint_url=endpoint.url)) as (client, _):
            assert client.base_url.port not in (0, None)
            assert (await client.get("/ready")).json()["status"] == "ready"
            page = (await client.get("/aip/v1/capabilities?text=session_get")).json()
            assert [entry["capability"]["id"] for entry in page["capabilities"]] == [
                "cap:hermes_agent:primary:session_get"
            ]
            response = await client.post("/aip/v1/messages", json=read_session("act_1"))
            envelope = response.json()
            assert wire.envelope_violations(envelope) == []
            assert envelope["body"]["action_result"]["status"] == "completed"
            assert envelope["body"]["action_result"]["output"]["session"]["id"] == "s"
            stored = (await client.get("/aip/v1/actions/act_1/result")).json()
            assert stored["action_result"] == envelope["body"]["action_result"]
    assert endpoint.requests == ["GET /health", "GET /api/sessions/s"]


ANOTHER = """
from tests.support.contract_offers import endpoint_offers

class Another:
    connector_id = "another"
    def offers(self):
        return endpoint_offers("another", tenant_id="local")
    def failure(self, kind, message, *, details, uncertain):
        raise NotImplementedError
    async def health(self):
        return {}
    async def aclose(self):
        closed.append(True)

closed = []

def build(settings, *, clock, new_id, faults):
    return Another()
"""


@pytest.mark.requirement("app:connectors:entry-points")
async def test_an_installed_connector_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "another-1.0.dist-info").mkdir(parents=True)
    (site / "another_connector.py").write_text(ANOTHER, encoding="utf-8")
    (site / "another-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (site / "another-1.0.dist-info" / "entry_points.txt").write_text(
        "[aip.connectors]\nanother = another_connector:build\n"
    )
    monkeypatch.syspath_prepend(str(site))
    async with serving(written(tmp_path)) as (client, _):
        for endpoint in ("another", "primary"):
            found = (await client.get(f"/aip/v1/capabilities?text=cap:hermes_agent:{endpoint}:")).json()
            assert found["total"] > 0
    assert import_module("another_connector").closed == [True]


@pytest.mark.requirement("server:message:client-gone")
async def test_an_action_outlives_the_client_that_sent_it(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        client, _ = await stack.enter_async_context(serving(written(tmp_path, endpoint_url=endpoint.url)))
        async with asyncio.timeout(10):
            assert client.base_url.port is not None
            _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            data = json.dumps(read_session("act_left")).encode()
            writer.write(
                b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                + f"authorization: {REQUESTER['authorization']}\r\ncontent-length: {len(data)}\r\n\r\n".encode()
                + data
            )
            await writer.drain()
            await endpoint.entered.wait()
            writer.transport.abort()
            # The server has seen the connection end once it has answered somebody else.
            assert (await client.get("/health")).status_code == 200
            endpoint.gate.set()
            state = ""
            while state != "completed":
                state = (await client.get("/aip/v1/actions/act_left")).json()["action_status"]["state"]


@pytest.mark.requirement("app:serve:stops")
async def test_a_stop_does_not_wait_for_a_request_for_ever(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with GatedEndpoint().running() as endpoint:
        async with serving(written(tmp_path, endpoint_url=endpoint.url)) as (client, stop):
            posting = asyncio.create_task(client.post("/aip/v1/messages", json=read_session("act_1"), timeout=30))
            async with asyncio.timeout(5):
                await endpoint.entered.wait()
            started = loop.time()
            stop.set()
            response = await posting
        error = response.json()["body"]["error"]["error"]
        assert (response.status_code, error["code"]) == (503, "gateway.stopping")
        assert (error["retryable"], error["details"]) == (False, {"uncertain_outcome": True})
        assert loop.time() - started < 5
    with OwnerLock(tmp_path / "data"):
        pass


@pytest.mark.requirement("app:serve:refusals")
async def test_a_port_in_use_is_refused_by_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match=f"can't listen on 127.0.0.1 port {port}: address already in use; stop"):
            await serve(written(tmp_path, port=port), on_ready=print, stop=asyncio.Event())


@pytest.mark.requirement("app:serve:refusals")
async def test_a_data_directory_in_use_is_refused_by_a_sentence(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "data"), pytest.raises(CannotServe, match=r"is in use by process .*; stop it first"):
        await serve(written(tmp_path), on_ready=print, stop=asyncio.Event())


@pytest.mark.requirement("app:serve:refusals")
@pytest.mark.parametrize("fault", ["authority", "folder"])
async def test_what_is_missing_at_the_start_is_named(tmp_path: Path, fault: str) -> None:
    settings = written(tmp_path)
    if fault == "authority":
        (tmp_path / "approval-authority.json").write_text("[]", encoding="utf-8")
    else:
        (tmp_path / "data").write_text("a file", encoding="utf-8")
    with pytest.raises(CannotServe, match="approval-authority.json" if fault == "authority" else "`store.dsn`"):
        await serve(settings, on_ready=print, stop=asyncio.Event())


async def test_the_application_opens_and_closes_with_its_lifespan(tmp_path: Path) -> None:
    application = build_app(written(tmp_path))
    async with application.router.lifespan_context(application):
        assert application.state.gateway.is_open
    assert not application.state.gateway.is_open


PROGRAM = """
import asyncio, sys
from aip_hermes.app import serve
from aip_hermes.settings import Settings
asyncio.run(serve(Settings.load(sys.argv[1]), on_ready=lambda url: print(url, flush=True)))
"""


@pytest.mark.requirement("app:serve:stops", "server:auth:reload", "server:log:no-payload")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reload_tokens_and_end_the_process_with_0(tmp_path: Path, number: signal.Signals) -> None:
    settings = written(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(settings.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url, trust_env=False) as client:
            assert client.get("/aip/v1/me", headers=REQUESTER).status_code == 200
            write_secret(tmp_path / "tokens" / "requester", "renewed-0123456789")
            process.send_signal(signal.SIGHUP)
            logged = [json.loads(process.stderr.readline())]
            while logged[-1]["event"] != "tokens.reloaded":
                logged.append(json.loads(process.stderr.readline()))
            assert client.get("/aip/v1/me", headers=REQUESTER).status_code == 401
            renewed = {"authorization": "Bearer renewed-0123456789"}
            assert client.get("/aip/v1/me", headers=renewed).status_code == 200
        process.send_signal(number)
        rest, errors = process.communicate(timeout=5)
        assert (process.returncode, rest) == (0, "")
        assert "0123456789" not in errors + json.dumps(logged)
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()
