"""The token table: who is let in, until when, and what a reload changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from aip_hermes.server import TokenTable
from aip_hermes.server.failures import BearerRefused
from aip_hermes.settings import Settings, SettingsError, TokenSettings
from aip_hermes.wire import principal_kind
from tests.support.server_site import FixedClock, Site, make_site, site_settings, write_secret


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = make_site(tmp_path)
    async with made.client:
        yield made


def with_tokens(settings: Settings, *tokens: TokenSettings) -> Settings:
    return replace(settings, tokens=tokens)


@pytest.mark.requirement("server:auth:principal-kind")
@pytest.mark.parametrize(
    ("principal", "kind"),
    [
        ("human:example:reviewer", "human"),
        ("service:x", "service"),
        ("system:x", "system"),
        ("tenant:x", "tenant"),
        ("customer:x", "customer"),
        ("contact:x", "contact"),
        ("agent:x", "agent"),
        ("robot:x", "agent"),
        ("Human:x", "agent"),
        ("human", "human"),
        ("plain", "agent"),
    ],
)
def test_the_first_segment_gives_the_kind(principal: str, kind: str) -> None:
    assert principal_kind(principal) == kind


@pytest.mark.requirement("server:auth:expiry")
async def test_a_token_ends_at_its_moment(site: Site) -> None:
    end = site.clock.ms + 5000
    expiring = replace(site.settings.tokens[0], expires_at_ms=end)
    site.gateway.tokens.reload(with_tokens(site.settings, expiring))
    site.clock.ms = end - 1
    assert (await site.get("/aip/v1/me")).json()["expires_at"] == "2030-01-01T00:00:05Z"
    site.clock.ms = end
    response = await site.get("/aip/v1/me")
    error = response.json()["body"]["error"]["error"]
    assert (response.status_code, error["code"]) == (401, "auth.native_http_unauthorized")
    assert error["message"].startswith("bearer token expired at 2030-01-01T00:00:05Z")


@pytest.mark.requirement("server:auth:reload")
async def test_a_reload_takes_new_tokens_and_drops_old_ones(site: Site) -> None:
    write_secret(site.settings.tokens[0].file, "another-token-0123456789")
    assert (await site.get("/aip/v1/me")).status_code == 200
    site.gateway.tokens.reload(site.settings)
    assert (await site.get("/aip/v1/me")).status_code == 401
    bearer = {"authorization": "Bearer another-token-0123456789"}
    assert (await site.client.get("/aip/v1/me", headers=bearer)).json()["principal"]["id"] == "agent:a:requester"


@pytest.mark.requirement("server:auth:reload")
@pytest.mark.parametrize("fault", ["missing", "open to others", "blank", "two words", "not ASCII", "the same"])
async def test_a_faulty_token_file_changes_nothing(site: Site, fault: str) -> None:
    file = site.settings.tokens[1].file
    text = {"blank": " \n", "two words": "a b", "not ASCII": "Schlüssel-0123456789"}.get(fault, "x-0123456789-abcdef")
    write_secret(file, site.settings.tokens[0].file.read_text() if fault == "the same" else text)
    if fault == "missing":
        file.unlink()
    if fault == "open to others":
        file.chmod(0o640)
    with pytest.raises(SettingsError) as caught:
        site.gateway.tokens.reload(site.settings)
    assert "`tokens[1].file`" in str(caught.value)
    assert text not in str(caught.value) or not text.strip()
    assert (await site.get("/aip/v1/me", who="reviewer")).status_code == 200


@pytest.mark.requirement("server:auth:strong-tokens")
def test_a_short_token_is_refused_where_others_can_reach_the_server(tmp_path: Path) -> None:
    settings = site_settings(tmp_path, server="host = '0.0.0.0'\nport = 0\npublic_base_url = 'https://aip.example.org'")
    assert len(TokenTable.of(settings, clock=FixedClock())) == 4
    write_secret(settings.tokens[2].file, "changeme")
    with pytest.raises(SettingsError, match=r"`tokens\[2\]\.file` .* needs 16 characters or more"):
        TokenTable.of(settings, clock=FixedClock())
    loopback = replace(settings, server=replace(settings.server, host="127.0.0.1"))
    assert len(TokenTable.of(loopback, clock=FixedClock())) == 4


@pytest.mark.requirement("server:auth:bearer-rules")
def test_a_header_is_trimmed_around_its_token(tmp_path: Path) -> None:
    table = TokenTable.of(site_settings(tmp_path), clock=FixedClock())
    caller, _ = table.authenticate([b"Bearer   token-of-reviewer-0123456789 \t"])
    assert (caller.principal.id, caller.principal.kind, caller.tenant_id) == ("human:a:reviewer", "human", "tenant-a")
    assert caller.issuer == "aip-hermes:native-http"
    with pytest.raises(BearerRefused, match="invalid bearer token"):
        table.authenticate([b"Bearer token-of-reviewer-012345678"])


@pytest.mark.requirement("server:log:no-payload")
def test_a_table_does_not_show_its_tokens(tmp_path: Path) -> None:
    table = TokenTable.of(site_settings(tmp_path), clock=FixedClock())
    assert "0123456789" not in repr(vars(table))
