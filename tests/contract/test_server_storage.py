"""A store that takes nothing more: what is said of an action depends on whether anything can have been sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.support.runtime_connector import ScriptedConnector
from tests.support.server_serving import envelope
from tests.support.server_streams import streaming_server


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


def refuse(folder: Path, event: str) -> None:
    """Let the store refuse what a trigger's event names, as a full disk does."""
    with closing(sqlite3.connect(folder / "data" / "runtime.sqlite3")) as raw:
        raw.execute(f"CREATE TRIGGER full BEFORE {event} BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        raw.commit()


@pytest.mark.requirement("server:storage:certain")
@pytest.mark.parametrize(
    ("operation", "given", "event", "certain", "sends"),
    [
        ("session_create", {"body": {"id": "s1"}}, "INSERT ON actions", True, 0),
        ("session_create", {"body": {"id": "s1"}}, "INSERT ON message_ids", True, 0),
        ("session_create", {"body": {"id": "s1"}}, "INSERT ON events", False, 1),
        ("session_get", {"session_id": "s1"}, "INSERT ON actions", True, 1),
    ],
)
async def test_an_action_is_uncertain_only_where_it_may_have_been_sent(
    tmp_path: Path, operation: str, given: dict[str, object], event: str, certain: bool, sends: int
) -> None:
    connector = ScriptedConnector(tenant="local")
    async with streaming_server(tmp_path, connector) as client:
        refuse(tmp_path, event)
        action = {
            "id": "act_1",
            "capability_id": f"cap:hermes_agent:primary:{operation}",
            "input": given,
            "idempotency_key": "k1",
        }
        response = await client.post("/aip/v1/messages", json=envelope({"action": action}, message_id="msg_1"))
        error = response.json()["body"]["error"]["error"]
        assert (response.status_code, error["code"], error["retryable"]) == (503, "storage.unavailable", True)
        assert ("uncertain_outcome" not in error.get("details", {})) == certain
        assert len(connector.sends) == sends
        with closing(sqlite3.connect(tmp_path / "data" / "runtime.sqlite3")) as raw:
            raw.execute("DROP TRIGGER full")
            raw.commit()
