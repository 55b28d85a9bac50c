"""What a client knows of its turns, beside what the endpoint holds: nothing lost, nothing twice, all in order, counted.

Every row of a turn has a place: the question, each call and its result, the reply. A ledger notes how far a turn is
known to be durable; the transcript must hold each turn's rows from the first on without a gap, at least that far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.support.scripted_model import CALLS, call_id, reply_to

__all__ = ["Ledger", "transcript"]


class Ledger:
    """The turns of one session in the order in which they were sent."""

    def __init__(self) -> None:
        self._durable: dict[str, int] = {}

    def sent(self, text: str) -> None:
        """A turn left; nothing of it is known."""
        self._durable[text] = 0

    def model_asked(self, text: str, results: int) -> None:
        """The model was asked: the question is durable, and each call with its result before."""
        self._known(text, 1 + 2 * results)

    def answered(self, text: str) -> None:
        """The turn was answered: all of it is durable."""
        self._known(text, len(_steps(text)))

    def check(self, session: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        """Hold a session object and its messages against what is known."""
        places = [self._place(row) for row in rows]
        found = {text: [step for turn, step in places if turn == number] for number, text in enumerate(self._durable)}
        assert places == sorted(places), "in the order in which they were said"
        for text, durable in self._durable.items():
            steps = found[text]
            assert steps == list(range(len(steps))), f"{text}: each row once, without a gap: {steps}"
            assert len(steps) >= durable, f"{text}: {durable} rows were durable, {len(steps)} are there"
        ids = [row["id"] for row in rows]
        assert ids == sorted(set(ids))
        assert session["message_count"] == len(rows)
        assert session["tool_call_count"] == sum(len(row["tool_calls"] or ()) for row in rows)

    def _known(self, text: str, rows: int) -> None:
        self._durable[text] = max(self._durable[text], rows)

    def _place(self, row: Mapping[str, Any]) -> tuple[int, int]:
        marks = {row["tool_call_id"], *(call["id"] for call in row["tool_calls"] or ()), row["content"]}
        for number, text in enumerate(self._durable):
            for step, (role, mark) in enumerate(_steps(text)):
                if row["role"] == role and mark in marks:
                    return number, step
        raise AssertionError(f"a row that nobody sent: {row}")


def _steps(text: str) -> list[tuple[str, str]]:
    """Return role and mark of each row of a turn: its text, or the id of a call."""
    steps = [("user", text)]
    if text.startswith("tools"):
        for number in range(CALLS):
            steps += [("assistant", call_id(text, number)), ("tool", call_id(text, number))]
    return [*steps, ("assistant", reply_to(text))]


async def transcript(client: httpx.AsyncClient, session_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the session object and its messages."""
    session = (await client.get(f"/api/sessions/{session_id}")).json()["session"]
    rows = (await client.get(f"/api/sessions/{session_id}/messages")).json()["data"]
    return session, rows
