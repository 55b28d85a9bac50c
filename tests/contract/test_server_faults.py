"""Faults of the server, and what its log says about requests."""

from __future__ import annotations

import io
import json
import pty
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from aip_hermes import log
from aip_hermes.database import StoreUnavailable
from tests.support.server_site import Site, action_message, make_site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = make_site(tmp_path)
    async with made.client:
        yield made


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    log.configure(stream=stream, console=False)
    yield stream
    structlog.reset_defaults()


def named(action_id: str) -> dict[str, Any]:
    """Return an envelope whose action has this id."""
    sent = action_message()
    sent["body"]["action"]["id"] = action_id
    return sent


def events(stream: io.StringIO, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in lines if line["event"] == name]


SECRETS = ("PAYLOAD-4711", "token-of-requester-0123456789", "QUERY-4711")


@pytest.mark.requirement("server:errors:no-detail", "server:log:no-payload")
@pytest.mark.parametrize("kind", [RuntimeError, KeyError, RecursionError, UnicodeError])
async def test_a_fault_is_answered_without_detail(site: Site, written: io.StringIO, kind: type[Exception]) -> None:
    site.runtime.failure = kind("PAYLOAD-4711")
    response = await site.post(action_message(input={"message": "PAYLOAD-4711"}))
    error = response.json()["body"]["error"]["error"]
    assert (response.status_code, error["code"]) == (500, "gateway.error")
    assert "PAYLOAD-4711" not in response.text
    [failed] = events(written, "server.failed")
    assert failed["exception"] == [kind.__name__]
    assert any("submit" in place for place in failed["at"])
    assert not [secret for secret in SECRETS if secret in written.getvalue()]


@pytest.mark.requirement("server:errors:no-detail")
async def test_a_store_that_is_locked_is_503_and_retryable(site: Site, written: io.StringIO) -> None:
    site.runtime.failure = StoreUnavailable("the store is not available: database is locked", kind="locked")
    response = await site.get("/aip/v1/actions/act_1")
    error = response.json()["body"]["error"]["error"]
    assert (response.status_code, error["code"]) == (503, "storage.unavailable")
    assert (error["retryable"], error["retry_after_ms"]) == (True, 1000)
    assert events(written, "server.store_failed")[0]["kind"] == "locked"


@pytest.mark.requirement("server:log:no-payload")
async def test_a_request_is_one_event_without_its_content(site: Site, written: io.StringIO) -> None:
    await site.post(action_message(input={"message": "PAYLOAD-4711"}))
    await site.get("/aip/v1/approvals?approver=QUERY-4711")
    await site.get("/aip/v1/actions/act_QUERY-4711", who=None)
    await site.get("/QUERY-4711")
    posted, listed, denied, lost = events(written, "server.request")
    for event in (posted, listed, denied, lost):
        event.pop("timestamp"), event.pop("duration_ms")
    assert posted == {
        "event": "server.request",
        "level": "info",
        "method": "POST",
        "route": "/aip/v1/messages",
        "status": 200,
        "principal": "agent:a:requester",
        "message": "action",
        "action_id": "act_1",
    }
    assert (listed["route"], listed["status"]) == ("/aip/v1/approvals", 200)
    assert (denied["route"], denied["status"]) == ("/aip/v1/actions/{action_id}", 401)
    assert denied["code"] == "auth.native_http_unauthorized"
    assert (lost["route"], lost["code"]) == ("", "route.not_found")
    assert not [secret for secret in SECRETS if secret in written.getvalue()]


@pytest.mark.requirement("server:log:no-payload")
def test_fields_that_should_not_be_logged_are_not(written: io.StringIO) -> None:
    structlog.get_logger().info(
        "test.event",
        input={"a": "PAYLOAD-4711"},
        nested={"messages": ["PAYLOAD-4711"], "input_tokens": 3},
        session_key="PAYLOAD-4711",
        note="Authorization: Bearer PAYLOAD-4711",
        thing=object(),
    )
    [event] = events(written, "test.event")
    assert "PAYLOAD-4711" not in written.getvalue()
    assert event["nested"]["input_tokens"] == 3
    assert event["thing"] == "<object>"


@pytest.mark.requirement("server:log:no-payload")
async def test_what_stands_in_the_place_of_an_action_id_is_not_logged(site: Site, written: io.StringIO) -> None:
    await site.post(named("PAYLOAD-4711"))
    [event] = events(written, "server.request")
    assert "action_id" not in event
    assert "PAYLOAD-4711" not in written.getvalue()


@pytest.mark.requirement("log:terminal:neutralised")
async def test_an_identity_cannot_steer_the_operators_terminal(site: Site, written: io.StringIO) -> None:
    log.configure(stream=written, console=True)
    hostile = "act_\x1b[2J\x1b]0;title\x07\u202e\x9b31m\n2030-01-01 [error] forged"
    await site.post(named(hostile))
    structlog.get_logger().info("test.event", nested={hostile: [hostile]})
    said = re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue())  # the renderer's own colours
    assert all(c.isprintable() or c == "\n" for c in said)
    assert len(said.splitlines()) == 2
    assert "act_\\x1b[2J" in said


@pytest.mark.requirement("log:text:plain")
def test_lines_for_people_have_colours_on_a_terminal_only(written: io.StringIO) -> None:
    log.configure(stream=written, console=True)
    structlog.get_logger().info("test.event", action_id="act_1")
    assert "\x1b" not in written.getvalue()
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as terminal, open(master, "rb", buffering=0) as screen:
        log.configure(stream=terminal)
        structlog.get_logger().info("test.event", action_id="act_1")
        terminal.flush()
        assert b"\x1b[" in screen.read(4096)
