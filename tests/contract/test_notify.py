"""The hint that an approval waits: what it says, how it is signed, how often it is sent, whom it never disturbs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes.ports import new_id
from aip_hermes.secret import Secret
from aip_hermes.server.notify import (
    ID_HEADER,
    PAUSES_S,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    WAITING,
    Notifier,
)
from aip_hermes.settings import NotifySettings, Settings, SettingsError
from tests.support.client_stub_server import Answer, running_stub
from tests.support.embedded_endpoint import KEY, served
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_site import Site, ask
from tests.support.server_serving import action as message
from tests.support.server_serving import serving, written_settings
from tests.support.server_site import write_secret

SECRET = "notify-secret-0123456789"
FACTS = {
    "tenant": "tenant-a",
    "approval_id": "appr_1",
    "capability_id": "cap:hermes_agent:primary:session_delete",
    "endpoint_id": "primary",
    "requester_id": "agent:example:requester",
    "expires_at": 1_893_456_900_000,
}


@dataclass
class Receiver:
    """Answers each hint with the next status; the last one for ever. got: what came."""

    statuses: list[int | Exception] = field(default_factory=lambda: [200])
    got: list[httpx.Request] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.got.append(request)
        self.came.set()
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if isinstance(status, Exception):
            raise status
        return httpx.Response(status, headers={"location": "http://127.0.0.1:9/elsewhere"})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so after a hint that came."""
        async with asyncio.timeout(30):
            while not condition():
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def notifying(receiver: Receiver, clock: ManualClock) -> AsyncIterator[Notifier]:
    settings = NotifySettings(url="https://hooks.example.org/aip?team=1", secret=Secret(SECRET))
    notifier = Notifier(settings, clock=clock, new_id=new_id, transport=httpx.MockTransport(receiver))
    notifier.open()
    try:
        yield notifier
    finally:
        async with asyncio.timeout(30):
            await notifier.aclose()


@pytest.mark.requirement("notify:signed-hint")
async def test_a_hint_has_these_members_and_a_signature_over_timestamp_and_body() -> None:
    receiver, clock = Receiver(), ManualClock()
    async with notifying(receiver, clock) as notifier:
        notifier.approval_waits(FACTS)
        await receiver.until(lambda: bool(receiver.got))
    [request] = receiver.got
    assert (request.method, str(request.url)) == ("POST", "https://hooks.example.org/aip?team=1")
    assert json.loads(request.content) == {
        "type": "aip.approval.waiting",
        "approval_id": "appr_1",
        "capability_id": "cap:hermes_agent:primary:session_delete",
        "endpoint_id": "primary",
        "requester": "agent:example:requester",
        "expires_at": "2030-01-01T00:15:00Z",
    }
    stamp = request.headers[TIMESTAMP_HEADER]
    assert stamp == str(clock.now_ms() // 1000)
    expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + request.content, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE_HEADER] == f"v1={expected}"
    assert request.headers[ID_HEADER].startswith("hook_")
    assert SECRET not in str(request.headers)


@pytest.mark.requirement("notify:bounded")
async def test_a_hint_that_nobody_takes_is_sent_five_times_and_the_next_one_follows() -> None:
    receiver, clock = Receiver(statuses=[503]), ManualClock()
    async with notifying(receiver, clock) as notifier:
        notifier.approval_waits(FACTS)
        for tries, pause_s in enumerate(PAUSES_S, start=1):
            await clock.until_asleep(pause_s)
            assert len(receiver.got) == tries
            clock.advance(int(pause_s * 1000))
        notifier.approval_waits({**FACTS, "approval_id": "appr_2"})
        await receiver.until(lambda: len(receiver.got) >= 6)
    first, *again, other = receiver.got[:6]
    assert len(again) == 4
    assert {request.headers[ID_HEADER] for request in again} == {first.headers[ID_HEADER]}
    assert len({request.headers[TIMESTAMP_HEADER] for request in (first, *again)}) == 5
    assert json.loads(other.content)["approval_id"] == "appr_2"


ANSWERS: list[tuple[int | Exception, bool]] = [
    (200, False), (204, False), (301, False), (307, False), (400, False), (401, False), (404, False), (410, False),
    (408, True), (429, True), (500, True), (502, True), (httpx.ConnectError("no"), True),
    (httpx.ReadTimeout("no"), True),
]  # fmt: skip


@pytest.mark.requirement("notify:bounded")
@pytest.mark.parametrize(("answer", "again"), ANSWERS, ids=lambda value: str(value) or type(value).__name__)
async def test_only_what_may_pass_is_sent_again_and_no_redirect_is_followed(
    answer: int | Exception, again: bool
) -> None:
    receiver, clock = Receiver(statuses=[answer, 200]), ManualClock()
    async with notifying(receiver, clock) as notifier:
        notifier.approval_waits(FACTS)
        if again:
            await clock.until_asleep(PAUSES_S[0])
            clock.advance(int(PAUSES_S[0] * 1000))
        notifier.approval_waits({**FACTS, "approval_id": "appr_2"})
        await receiver.until(lambda: any(b"appr_2" in request.content for request in receiver.got))
    sent = [json.loads(request.content)["approval_id"] for request in receiver.got]
    assert sent == ["appr_1", "appr_1", "appr_2"] if again else ["appr_1", "appr_2"]
    assert {request.url.host for request in receiver.got} == {"hooks.example.org"}


@pytest.mark.requirement("notify:bounded")
async def test_hints_beyond_what_may_wait_are_dropped_without_a_word_to_their_actions() -> None:
    receiver, clock = Receiver(statuses=[503]), ManualClock()
    async with notifying(receiver, clock) as notifier:
        for number in range(WAITING + 50):
            notifier.approval_waits({**FACTS, "approval_id": f"appr_{number}"})
        await clock.until_asleep(PAUSES_S[0])
    assert len(receiver.got) == 1


@pytest.mark.requirement("notify:signed-hint", "notify:bounded")
async def test_an_approval_that_waits_is_told_after_its_commit_whatever_becomes_of_the_hint(tmp_path: Path) -> None:
    told: list[Any] = []

    def listen(facts: Any) -> None:
        told.append(facts)
        raise RuntimeError("nobody is there")

    site = Site(tmp_path, approval_waits=listen)
    async with site.open() as runtime:
        given, request = await ask(site, runtime, input={"session_id": "MARK-session"})
        again = await site.submit(runtime, given)
    assert again.status == "pending_approval"
    [facts] = told
    assert (facts["approval_id"], facts["endpoint_id"]) == (request.id, "primary")
    assert facts["requester_id"] == "agent:example:requester"
    assert "MARK" not in repr(facts)


URLS = [
    ("https://hooks.example.org/a?b=c", True),
    ("http://127.0.0.1:9/x", True),
    ("http://localhost/x", True),
    ("http://hooks.example.org/", False),
    ("https://user:pw@hooks.example.org/", False),
    ("ftp://hooks.example.org/", False),
    ("https://", False),
    ("https://hooks.example.org/ x", False),
    ("https://hooks.example.org/#x", False),
]


@pytest.mark.requirement("settings:notify")
@pytest.mark.parametrize(("url", "fine"), URLS)
def test_a_webhook_goes_to_https_or_to_this_machine(tmp_path: Path, url: str, fine: bool) -> None:
    write_secret(tmp_path / "notify.secret", SECRET)
    extra = f'\n[notify]\nurl = "{url}"\nsecret_file = "notify.secret"\n'
    if fine:
        notify = written_settings(tmp_path, extra=extra).notify
        assert notify is not None
        assert (notify.url, SECRET in repr(notify)) == (url, False)
        return
    with pytest.raises(SettingsError) as refused:
        written_settings(tmp_path, extra=extra)
    assert refused.value.member == "notify.url"
    assert "pw" not in str(refused.value)


@pytest.mark.requirement("settings:notify")
@pytest.mark.parametrize(("content", "mode"), [("short", 0o600), (SECRET, 0o644), (None, 0)])
def test_its_secret_is_long_and_for_its_owner_alone(tmp_path: Path, content: str | None, mode: int) -> None:
    if content is not None:
        write_secret(tmp_path / "notify.secret", content).chmod(mode)
    with pytest.raises(SettingsError) as refused:
        written_settings(
            tmp_path, extra='\n[notify]\nurl = "https://hooks.example.org/"\nsecret_file = "notify.secret"\n'
        )
    assert refused.value.member == "notify.secret_file"
    assert "short" not in str(refused.value).replace("notify.secret", "")


@pytest.mark.requirement("notify:signed-hint", "notify:bounded")
async def test_a_served_delete_tells_the_address_once_and_follows_no_redirect(tmp_path: Path) -> None:
    write_secret(tmp_path / "aip" / "notify.secret", SECRET)
    with running_stub(lambda _: Answer(status=302, headers={"location": "/elsewhere"})) as stub:
        async with served(tmp_path / "hermes") as hermes:
            await hermes.create("s")
            url = str(hermes.client.base_url).rstrip("/") + "/"
            extra = f'\n[notify]\nurl = "{stub.url.rstrip("/")}/hook"\nsecret_file = "notify.secret"\n'
            settings = written_settings(tmp_path / "aip", endpoint_url=url, extra=extra)
            write_secret(tmp_path / "aip" / "hermes.key", KEY)
            async with serving(Settings.load(settings.path)) as (client, _):
                asked = await client.post("/aip/v1/messages", json=message("act_1", "session_delete", key="K"))
                assert asked.json()["body"]["action_result"]["status"] == "pending_approval"
                got = await asyncio.to_thread(stub.wait_for_request)
    assert (got.method, got.target) == ("POST", "/hook")
    assert got.json["requester"] == "agent:local:requester"
    assert [request.target for request in stub.requests] == ["/hook"]
