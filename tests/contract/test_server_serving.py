"""The composed server over real HTTP: entry points, readiness, a client that leaves, stopping, refusals."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import structlog

from aip_hermes import wire
from aip_hermes.app import CannotServe, build_app, serve
from aip_hermes.database import OwnerLock
from aip_hermes.server.listening import DRAIN_S
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import REQUESTER, action, serving, written_settings
from tests.support.server_site import write_secret


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.mark.requirement("app:connectors:entry-points", "app:serve:ready", "server:wire:schemas")
async def test_a_served_action_reaches_the_endpoint_and_comes_back(tmp_path: Path) -> None:
    async with GatedEndpoint().running() as endpoint:
        endpoint.gate.set()
        async with serving(written_settings(tmp_path, endpoint_url=endpoint.url)) as (client, _):
            assert client.base_url.port not in (0, None)
            assert (await client.get("/ready")).json()["status"] == "ready"
            page = (await client.get("/aip/v1/capabilities?text=session_get")).json()
            assert [entry["capability"]["id"] for entry in page["capabilities"]] == [
                "cap:hermes_agent:primary:session_get"
            ]
            response = await client.post("/aip/v1/messages", json=action("act_1"))
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
    async with serving(written_settings(tmp_path)) as (client, _):
        for endpoint in ("another", "primary"):
            found = (await client.get(f"/aip/v1/capabilities?text=cap:hermes_agent:{endpoint}:")).json()
            assert found["total"] > 0
    assert import_module("another_connector").closed == [True]


@pytest.mark.requirement("server:message:client-gone")
async def test_an_action_outlives_the_client_that_sent_it(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        client, _ = await stack.enter_async_context(serving(written_settings(tmp_path, endpoint_url=endpoint.url)))
        async with asyncio.timeout(30):
            assert client.base_url.port is not None
            _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            data = json.dumps(action("act_left")).encode()
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
    async with GatedEndpoint().running() as endpoint:
        async with serving(written_settings(tmp_path, endpoint_url=endpoint.url)) as (client, stop):
            posting = asyncio.create_task(client.post("/aip/v1/messages", json=action("act_1")))
            async with asyncio.timeout(30):
                await endpoint.entered.wait()
            stop.set()
            response = await posting
        error = response.json()["body"]["error"]["error"]
        assert (response.status_code, error["code"]) == (503, "gateway.stopping")
        assert (error["retryable"], error["details"]) == (False, {"uncertain_outcome": True})
        assert DRAIN_S < 5
    with OwnerLock(tmp_path / "data"):
        pass


@pytest.mark.requirement("server:body:size")
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_client_that_sends_too_much_hears_the_answer(tmp_path: Path, chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b" " * 65_536

    async with serving(written_settings(tmp_path)) as (client, _):
        headers = {"content-type": "application/json"}
        content = chunks() if chunked else b" " * 2_097_152
        response = await client.post("/aip/v1/messages", content=content, headers=headers)
        assert response.status_code == 413
        assert response.json()["body"]["error"]["error"]["code"] == "envelope.too_large"
        assert (await client.get("/health")).status_code == 200


@pytest.mark.requirement("server:body:one-meaning")
async def test_a_client_that_leaves_in_the_middle_of_a_body_disturbs_nobody(tmp_path: Path) -> None:
    async with serving(written_settings(tmp_path)) as (client, _):
        assert client.base_url.port is not None
        _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(
            b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 99\r\n\r\n{"
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await client.get("/aip/v1/me")).status_code == 200


@pytest.mark.requirement("app:serve:refusals")
async def test_a_port_in_use_is_refused_by_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match=f"can't listen on 127.0.0.1 port {port}: address already in use; stop"):
            await serve(written_settings(tmp_path, port=port), on_ready=print, stop=asyncio.Event())


@pytest.mark.requirement("app:serve:refusals")
async def test_a_data_directory_in_use_is_refused_by_a_sentence(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "data"), pytest.raises(CannotServe, match=r"is in use by process .*; stop it first"):
        await serve(written_settings(tmp_path), on_ready=print, stop=asyncio.Event())


@pytest.mark.requirement("app:serve:refusals")
@pytest.mark.parametrize("fault", ["authority", "folder"])
async def test_what_is_missing_at_the_start_is_named(tmp_path: Path, fault: str) -> None:
    settings = written_settings(tmp_path)
    if fault == "authority":
        (tmp_path / "approval-authority.json").write_text("[]", encoding="utf-8")
    else:
        (tmp_path / "data").write_text("a file", encoding="utf-8")
    with pytest.raises(CannotServe, match="approval-authority.json" if fault == "authority" else "`store.dsn`"):
        await serve(settings, on_ready=print, stop=asyncio.Event())


async def test_the_application_opens_and_closes_with_its_lifespan(tmp_path: Path) -> None:
    application = build_app(written_settings(tmp_path))
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
    settings = written_settings(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(settings.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
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
        rest, errors = process.communicate(timeout=30)
        assert (process.returncode, rest) == (0, "")
        assert "0123456789" not in errors + json.dumps(logged)
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()
