"""Forks: atomic and marked by default, as release 0.19.0 makes them with its quirks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from aip_hermes.embedded import QUIRKS, chosen_quirks
from tests.support.embedded_endpoint import Running, SteppingClock, code_of, endpoint


async def prepared(hermes: Running) -> None:
    """A titled source with one turn, and another row whose title is taken."""
    await hermes.create("src", title="Case one", system_prompt="P")
    await hermes.chat("src", "first")
    await hermes.create("other", title="Taken")


@pytest.mark.requirement("embedded:fork:separate", "embedded:fork:title")
async def test_a_fork_is_a_copy_and_the_source_still_answers_for_itself(tmp_path: Path) -> None:
    async with endpoint(tmp_path, clock=SteppingClock()) as hermes:
        await prepared(hermes)
        answer = await hermes.client.post("/api/sessions/src/fork", json={"id": "f1", "model": "ignored"})
        child = answer.json()["session"]

        assert answer.status_code == 201
        assert (child["parent_session_id"], child["title"], child["message_count"]) == ("src", "Case one #2", 2)
        assert (child["source"], child["model"], child["input_tokens"]) == ("api_server", "hermes-agent", 0)
        assert (child["has_system_prompt"], child["has_model_config"]) == (True, False)
        source = await hermes.session("src")
        assert source["end_reason"] == "branched"

        await hermes.chat("f1", "on the branch")
        await hermes.chat("src", "on the source")
        resolved, rows = await hermes.messages("src")
        branch_id, branch = await hermes.messages("f1")
        assert (resolved, branch_id) == ("src", "f1")
        assert [row["content"] for row in rows if row["role"] == "user"] == ["first", "on the source"]
        assert [row["content"] for row in branch if row["role"] == "user"] == ["first", "on the branch"]
        assert branch[0]["timestamp"] == rows[0]["timestamp"]
        assert branch[0]["id"] > rows[0]["id"]


@pytest.mark.requirement("embedded:fork:separate")
async def test_a_fork_of_a_closed_row_is_listed_and_the_reason_stays(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("src")
        await hermes.client.patch("/api/sessions/src", json={"end_reason": "done"})
        await hermes.client.post("/api/sessions/src/fork", json={"id": "f1"})

        assert (await hermes.session("src"))["end_reason"] == "done"
        assert (await hermes.session("f1"))["title"] == "fork"
        listed = (await hermes.client.get("/api/sessions")).json()["data"]
        assert {row["id"] for row in listed} == {"src", "f1"}


@pytest.mark.parametrize(("title", "stored"), [("  Own  ", "Own"), ("   ", None), ("", None), (None, "Case one #2")])
@pytest.mark.requirement("embedded:fork:title")
async def test_a_fork_takes_its_title(tmp_path: Path, title: str | None, stored: str | None) -> None:
    async with endpoint(tmp_path) as hermes:
        await prepared(hermes)
        answer = await hermes.client.post("/api/sessions/src/fork", json={"session_id": "f1", "title": title})

        assert answer.json()["session"]["title"] == stored


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"id": "f1", "title": "Taken"}, (400, "invalid_title")),
        ({"id": "f1", "title": "t" * 101}, (400, "invalid_title")),
        ({"id": "other"}, (409, "session_exists")),
        ({"id": "src"}, (409, "session_exists")),
        ({"id": "a/b"}, (400, "invalid_session_id")),
    ],
)
@pytest.mark.requirement("embedded:fork:atomic", "embedded:fork:ids")
async def test_a_refused_fork_changes_nothing(tmp_path: Path, body: dict[str, str], refusal: tuple[int, str]) -> None:
    async with endpoint(tmp_path) as hermes:
        await prepared(hermes)
        before = [await hermes.session("src"), await hermes.session("other")]
        assert code_of(await hermes.client.post("/api/sessions/src/fork", json=body)) == refusal

        assert [await hermes.session("src"), await hermes.session("other")] == before
        assert len((await hermes.client.get("/api/sessions?include_children=1")).json()["data"]) == 2


@pytest.mark.requirement("embedded:fork:atomic")
async def test_of_five_forks_to_one_id_one_wins_with_the_rows_once(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes, asyncio.timeout(30):
        await prepared(hermes)
        forks = await asyncio.gather(
            *(hermes.client.post("/api/sessions/src/fork", json={"id": "fk"}) for _ in range(5))
        )

        assert Counter(answer.status_code for answer in forks) == {201: 1, 409: 4}
        assert len((await hermes.messages("fk"))[1]) == 2
        assert (await hermes.session("fk"))["message_count"] == 2


@pytest.mark.parametrize("title", ["Taken", "t" * 101])
@pytest.mark.requirement("embedded:quirk:fork-not-atomic")
async def test_the_quirk_leaves_a_half_fork(tmp_path: Path, title: str) -> None:
    async with endpoint(tmp_path, quirks=["fork-not-atomic"]) as hermes:
        await prepared(hermes)
        refused = await hermes.client.post("/api/sessions/src/fork", json={"id": "half", "title": title})
        again = await hermes.client.post("/api/sessions/src/fork", json={"id": "half"})

        assert code_of(refused) == (400, "invalid_title")
        assert code_of(again) == (409, "session_exists")
        assert (await hermes.session("src"))["end_reason"] == "branched"
        half = await hermes.session("half")
        assert (half["title"], half["message_count"], half["parent_session_id"]) == (None, 2, "src")
        assert (await hermes.messages("src"))[0] == "src"


@pytest.mark.requirement("embedded:quirk:fork-not-atomic")
async def test_the_quirk_makes_the_same_fork_when_nothing_is_wrong(tmp_path: Path) -> None:
    async with endpoint(tmp_path, quirks=["fork-not-atomic"]) as hermes:
        await prepared(hermes)
        child = (await hermes.client.post("/api/sessions/src/fork", json={"id": "f1"})).json()["session"]

        assert (child["title"], child["message_count"], child["has_system_prompt"]) == ("Case one #2", 2, True)
        assert [row["role"] for row in (await hermes.messages("f1"))[1]] == ["user", "assistant"]


@pytest.mark.parametrize("also", [(), ("fork-not-atomic",)])
@pytest.mark.requirement("embedded:quirk:fork-child-resolves")
async def test_the_quirk_answers_a_source_with_its_newest_child(tmp_path: Path, also: tuple[str, ...]) -> None:
    async with endpoint(tmp_path, quirks=["fork-child-resolves", *also], clock=SteppingClock()) as hermes:
        await prepared(hermes)
        for child in ("f1", "f2"):
            await hermes.client.post("/api/sessions/src/fork", json={"id": child})
        await hermes.chat("src", "invisible")

        resolved, rows = await hermes.messages("src")
        assert resolved == "f2"
        assert [row["content"] for row in rows if row["role"] == "user"] == ["first"]
        assert (await hermes.session("src"))["message_count"] == 4
        for child in ("f1", "f2"):
            await hermes.client.delete(f"/api/sessions/{child}")
        resolved, rows = await hermes.messages("src")
        assert (resolved, len(rows)) == ("src", 4)


@pytest.mark.requirement("embedded:quirk:names")
def test_an_unknown_quirk_is_refused_with_the_list() -> None:
    assert chosen_quirks(QUIRKS) == QUIRKS.keys() >= {"fork-not-atomic", "fork-child-resolves"}
    with pytest.raises(ValueError, match=r"no such quirk: nonsense; there are: ") as refused:
        chosen_quirks(["nonsense"])
    assert [name for name in QUIRKS if name not in str(refused.value)] == []
