"""A store that goes away in the middle of a request. The code that says "not there" must mean "nothing happened"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.embedded.agent import ToolCall
from aip_hermes.embedded.agent.models import ModelReply, ModelRequest, Pieces
from aip_hermes.embedded.session_db import SessionDB
from tests.support.embedded_endpoint import RecordingModel, endpoint

T = TypeVar("T")


class LeavingStore(SessionDB):
    """Serves `left` more operations, then is away; None: stays."""

    left: int | None = None

    def _serve(self) -> None:
        if self.left is None:
            return
        if self.left == 0:
            raise StoreUnavailable("the store is not available: disk I/O error", kind="io")
        self.left -= 1

    async def read(self, function: Callable[[Connection], T]) -> T:
        self._serve()
        return await super().read(function)

    async def write(self, function: Callable[[Connection], T]) -> T:
        self._serve()
        return await super().write(function)

    async def content(self) -> list[Sequence[Any]]:
        """Return all rows and all messages."""
        self.left = None

        def everything(connection: Connection) -> list[Sequence[Any]]:
            found = [connection.execute(f"SELECT * FROM {table} ORDER BY id") for table in ("sessions", "messages")]  # noqa: S608
            return [tuple(dict(row).items()) for rows in found for row in rows]

        return await self.read(everything)


class CallingModel(RecordingModel):
    """Calls the one tool first."""

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        if len(self.requests) == 1:
            call = ToolCall(id="call_1", name="record_command", arguments='{"command": "ls"}')
            yield ModelReply(text="", tool_calls=(call,), finish_reason="tool_calls")
        else:
            yield "Done."
            yield ModelReply(text="Done.")


_REQUESTS: Mapping[str, tuple[str, str, Mapping[str, Any] | None]] = {
    "create": ("POST", "/api/sessions", {"id": "new", "title": "New"}),
    "change": ("PATCH", "/api/sessions/s", {"title": "Other", "end_reason": "done"}),
    "delete": ("DELETE", "/api/sessions/s", None),
    "fork": ("POST", "/api/sessions/s/fork", {"id": "child", "title": "Child"}),
    "chat": ("POST", "/api/sessions/s/chat", {"message": "again"}),
}


@pytest.mark.requirement("embedded:store:unavailable-means-nothing-done")
@pytest.mark.parametrize("quirks", [(), ("fork-not-atomic",)], ids=["plain", "fork-not-atomic"])
@pytest.mark.parametrize(("method", "path", "body"), _REQUESTS.values(), ids=list(_REQUESTS))
async def test_a_store_that_is_not_there_has_done_nothing(
    tmp_path: Path, method: str, path: str, body: Mapping[str, Any] | None, quirks: Sequence[str]
) -> None:
    done = False
    for served in range(20):
        folder = tmp_path / str(served)
        folder.mkdir()
        store = LeavingStore(folder / "hermes.db")
        async with endpoint(folder, db=store, model=CallingModel(), quirks=quirks) as hermes:
            await hermes.create("s", title="Source")
            await store.append_message("s", "user", "first")
            before = await store.content()
            store.left = served
            answer = await hermes.client.request(method, path, json=body)
            after = await store.content()
        if done := answer.status_code < 300:
            break
        assert answer.status_code in (500, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "session_db_unavailable"
            assert after == before
    assert done
