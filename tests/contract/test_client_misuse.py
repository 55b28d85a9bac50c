"""What nobody should do with a client: it is refused in words, before anything is sent or kept as sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import AipClient, HermesClient, SqliteIdentityStore, Unusable
from aip_hermes.ids import ActionId, CapabilityId, HermesSessionKey
from tests.support.client_site import cap, sid
from tests.support.client_stub_server import Answer, StubServer, running_stub
from tests.support.hermes_clients import SESSION

ROW = Answer(body={"object": "hermes.session", "session": SESSION})
TURN = Answer(body={"session_id": "s1", "message": {"role": "assistant", "content": "Yes"}})
NO_TIMES = (0, 0.0, -1, float("nan"))


@pytest.mark.requirement("client:misuse:one-loop")
def test_a_client_that_was_used_in_another_event_loop_sends_nothing() -> None:
    with running_stub(lambda _: ROW) as server:
        hermes = HermesClient(base_url=server.url)
        asyncio.run(hermes.get(session_id=sid("s1")))
        with pytest.raises(Unusable) as refused:
            asyncio.run(hermes.delete(session_id=sid("s1")))
        assert len(server.requests) == 1
    assert (refused.value.uncertain, refused.value.retryable) == (False, False)
    assert "event loop" in refused.value.message


@pytest.mark.requirement("client:misuse:one-loop")
async def test_a_call_through_a_closed_client_is_known_not_to_have_left(tmp_path: Path) -> None:
    with running_stub(lambda _: ROW) as server:
        async with SqliteIdentityStore(tmp_path / "ids.db") as store:
            client = AipClient(base_url=server.url, store=store)
            await client.aclose()
            with pytest.raises(Unusable) as refused:
                await client.call(cap("session_create"), {"body": {}}, action_id=ActionId("act_1"))
            assert refused.value.identities is not None
            assert refused.value.uncertain is False
            assert await store.open_calls() == []
        assert server.requests == []


@pytest.mark.requirement("client:misuse:times")
@pytest.mark.parametrize("time", NO_TIMES)
@pytest.mark.parametrize("name", ["connect_timeout_s", "read_timeout_s", "turn_timeout_s", "call_timeout_s"])
def test_a_client_takes_no_time_that_is_none(name: str, time: float) -> None:
    kind: Any = AipClient if name == "call_timeout_s" else HermesClient
    with pytest.raises(ValueError, match=f"{name} is a number of seconds above 0"):
        kind(base_url="http://127.0.0.1:1", **{name: time})


@pytest.mark.requirement("client:misuse:times")
@pytest.mark.parametrize("time", NO_TIMES)
async def test_a_call_takes_no_time_that_is_none(time: float, tmp_path: Path) -> None:
    with running_stub(lambda _: TURN) as server:
        async with HermesClient(base_url=server.url) as hermes:
            with pytest.raises(ValueError, match="timeout_s"):
                await hermes.chat("hi", session_id=sid("s1"), timeout_s=time)
            with pytest.raises(ValueError, match="idle_s"):
                await anext(hermes.chat_stream("hi", session_id=sid("s1"), idle_s=time))
        async with (
            SqliteIdentityStore(tmp_path / "ids.db") as store,
            AipClient(base_url=server.url, store=store) as aip,
        ):
            with pytest.raises(ValueError, match="timeout_s"):
                await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"), timeout_s=time)
            assert await store.open_calls() == []
        assert server.requests == []


@pytest.mark.requirement("client:misuse:address")
@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ValueError, match="port"):
        HermesClient(base_url=f"http://127.0.0.1:{port}")


@pytest.mark.requirement("endpoint:session-key")
@pytest.mark.parametrize(
    ("key", "sent"), [("memory", b"memory"), (" m k ", b"m k"), ("schlüssel", "schlüssel".encode())]
)
async def test_a_session_key_goes_out_as_the_connector_sends_it(key: str, sent: bytes) -> None:
    with running_stub(lambda _: TURN) as server:
        async with HermesClient(base_url=server.url) as hermes:
            await hermes.chat("hi", session_id=sid("s1"), session_key=HermesSessionKey(key))
        assert _session_key(server) == sent


@pytest.mark.requirement("endpoint:session-key")
@pytest.mark.parametrize("key", ["a\x01b", "\ud800secret", "a\x7fb"])
async def test_a_session_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with running_stub(lambda _: TURN) as server:
        async with HermesClient(base_url=server.url) as hermes:
            with pytest.raises(ValueError, match="no header can carry this session key") as refused:
                await hermes.chat("hi", session_id=sid("s1"), session_key=HermesSessionKey(key))
        assert server.requests == []
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def _session_key(server: StubServer) -> bytes:
    headers: Mapping[str, str] = server.requests[-1].headers
    [value] = [text for name, text in headers.items() if name.lower() == "x-hermes-session-key"]
    return value.encode("latin-1")


NO_ACTIONS: tuple[Mapping[str, Any], ...] = (
    {"input": None},
    {"input": {"message": "a secret"}, "mode": "a secret"},
    {"input": {"message": "a secret"}, "extra": {"another": "a secret"}},
    {"input": {"message": float("nan")}},
)


@pytest.mark.requirement("client:misuse:no-action")
@pytest.mark.parametrize("given", NO_ACTIONS)
async def test_what_can_not_be_sent_is_not_kept_and_not_shown(given: Mapping[str, Any], tmp_path: Path) -> None:
    with running_stub(lambda _: Answer(status=404)) as server:
        async with (
            SqliteIdentityStore(tmp_path / "ids.db") as store,
            _Unknowing(base_url=server.url, store=store) as aip,
        ):
            with pytest.raises(ValueError) as refused:  # noqa: PT011  the texts are the validator's
                await aip.call(cap("session_chat"), **given)
            assert await store.open_calls() == []
        assert server.requests == []
    assert "secret" not in str(refused.value)


class _Unknowing(AipClient):
    """Of a server that tells no contracts."""

    async def contract(self, capability_id: CapabilityId) -> None:
        return None


@pytest.mark.requirement("client:misuse:kinds")
@pytest.mark.parametrize("name", ["idempotency_key", "session_id", "new_session_id", "session_key", "action_id"])
async def test_an_identity_of_another_kind_is_refused(name: str) -> None:
    other: Any = sid("act_1") if name == "action_id" else ActionId("act_1")
    with running_stub(lambda _: Answer(status=404)) as server:
        async with AipClient(base_url=server.url) as aip:
            with pytest.raises(TypeError, match=f"^{name} is a "):
                await aip.call(cap("session_chat"), {"message": "hi"}, **{name: other})
        assert server.requests == []


@pytest.mark.requirement("client:misuse:kinds")
@pytest.mark.parametrize("operation", ["session_chat", "session_patch", "session_delete", "responses"])
async def test_a_new_session_has_no_place_in_a_call_that_makes_none(operation: str) -> None:
    with running_stub(lambda _: Answer(status=404)) as server:
        async with AipClient(base_url=server.url) as aip:
            with pytest.raises(ValueError, match=f"^{operation} makes no session"):
                await aip.call(cap(operation), {"message": "hi"}, new_session_id=sid("new-1"))
        assert server.requests == []
