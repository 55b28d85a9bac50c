"""Quirks and faults from the command line of a real process."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.support.processes import finish, start, stop


@pytest.mark.requirement("embedded:faults:command")
def test_the_command_serves_an_endpoint_whose_first_chat_loses_its_answer(tmp_path: Path) -> None:
    words = ["hermes", "--data", str(tmp_path / "h"), "--port", "0", "--fault", "lost-answer:session_chat:1"]
    process = start(words)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        key = Path(ready["hermes_key_file"]).read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=ready["hermes_url"], headers=headers, trust_env=False, timeout=30) as client:
            client.post("/api/sessions", json={"id": "s"}).raise_for_status()
            with pytest.raises(httpx.TransportError):
                client.post("/api/sessions/s/chat", json={"message": "one"})
            assert len(client.get("/api/sessions/s/messages").json()["data"]) == 2
            assert client.post("/api/sessions/s/chat", json={"message": "two"}).status_code == 200
    finally:
        stop(process)


@pytest.mark.parametrize(
    ("fault", "told"), [("nope:session_chat:1", "lost-answer"), ("lost-answer:nope:1", "session_chat")]
)
@pytest.mark.requirement("embedded:faults:names", "embedded:faults:command")
def test_a_fault_that_can_t_be_is_answered_with_what_there_is(tmp_path: Path, fault: str, told: str) -> None:
    words = ["hermes", "--data", str(tmp_path / "h"), "--port", "0", "--fault", fault]
    status, out, err = finish(start(words))
    assert (status != 0, out, "Traceback" in err) == (True, "", False)
    assert "--fault: " in err
    assert told in err
    assert not (tmp_path / "h").exists()
