"""Quirks of release 0.19.0 in ids and turns, each beside what the endpoint does without it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.embedded_endpoint import code_of, endpoint

LONG = "c" * 300


@pytest.mark.parametrize("child", ["a/../b", "a\\b", "C:x", LONG])
@pytest.mark.requirement("embedded:quirk:unchecked-fork-id")
async def test_the_quirk_lets_a_fork_take_an_id_that_is_refused_without_it(tmp_path: Path, child: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("src")
        assert code_of(await hermes.client.post("/api/sessions/src/fork", json={"id": child}))[0] == 400
    async with endpoint(tmp_path, quirks=["unchecked-fork-id"]) as hermes:
        forked = await hermes.client.post("/api/sessions/src/fork", json={"id": child})
        assert (forked.status_code, forked.json()["session"]["id"]) == (201, child)
        assert (await hermes.session(quote(child, safe="")))["parent_session_id"] == "src"
        assert code_of(await hermes.client.post("/api/sessions", json={"id": child})) == (400, "invalid_session_id")


@pytest.mark.parametrize("child", ["  \t", "a\nb", "a\rb", "a\0b"])
@pytest.mark.requirement("embedded:quirk:unchecked-fork-id")
async def test_the_quirk_still_refuses_blank_ids_and_ids_that_break_a_line(tmp_path: Path, child: str) -> None:
    async with endpoint(tmp_path, quirks=["unchecked-fork-id"]) as hermes:
        await hermes.create("src")
        refused = await hermes.client.post("/api/sessions/src/fork", json={"id": child})
        assert code_of(refused) == (400, "invalid_session_id")
        assert (await hermes.session("src"))["ended_at"] is None
