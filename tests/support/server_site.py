"""A native AIP site in one process: settings on disk, two tenants, four tokens, a scripted runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.server import Gateway, TokenTable, native_application
from aip_hermes.settings import Settings
from tests.support.contract_offers import endpoint_offers
from tests.support.server_runtime import ScriptedRuntime

__all__ = [
    "FixedClock",
    "Site",
    "action_message",
    "counting_ids",
    "make_site",
    "message",
    "write_secret",
    "write_settings",
]

NOW_MS: Final = 1_893_456_000_000
"""2030-01-01T00:00:00Z"""

TOKENS: Final[Mapping[str, tuple[str, str | None]]] = {
    "requester": ("agent:a:requester", "tenant-a"),
    "reviewer": ("human:a:reviewer", "tenant-a"),
    "stranger": ("agent:b:requester", "tenant-b"),
    "homeless": ("service:nowhere", None),
}


class FixedClock:
    """Stands still unless a test moves it."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class counting_ids:  # noqa: N801 – used like the function it stands for
    """Prefix plus a running number."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made:032x}"


def write_secret(path: Path, text: str) -> Path:
    """Write a credential file as the rules want it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def write_settings(path: Path, text: str) -> Path:
    """Write a settings file as the rules want it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def site_settings(folder: Path, *, extra: str = "", server: str = "") -> Settings:
    """Write and load the settings of a site with two tenants, one endpoint each."""
    write_secret(folder / "hermes.key", "provider-key-0123456789")
    tables = [f"[server]\n{server or 'port = 0'}\n"]
    for endpoint, tenant in (("primary", "tenant-a"), ("other", "tenant-b")):
        tables.append(
            f'[[endpoints]]\nid = "{endpoint}"\nbase_url = "http://127.0.0.1:9/"\nkey_file = "hermes.key"\n'
            f'tenant_id = "{tenant}"\ndisplay_name = "{endpoint.title()}"\n'
        )
    for name, (principal, tenant_id) in TOKENS.items():
        write_secret(folder / "tokens" / name, f"token-of-{name}-0123456789\n")
        bound = "" if tenant_id is None else f'tenant = "{tenant_id}"\n'
        tables.append(
            f'[[tokens]]\nfile = "tokens/{name}"\nprincipal = "{principal}"\n{bound}'
            'scopes = ["action:read", "approval:read"]\n'
        )
    return Settings.load(write_settings(folder / "aip-hermes.toml", "\n".join(tables) + extra))


@dataclass(frozen=True, kw_only=True)
class Site:
    """client: speaks to the application in process. runtime: what stands behind it."""

    settings: Settings
    gateway: Gateway
    runtime: ScriptedRuntime
    clock: FixedClock
    client: httpx.AsyncClient
    catalog: Catalog

    def bearer(self, name: str = "requester") -> dict[str, str]:
        return {"authorization": f"Bearer token-of-{name}-0123456789"}

    async def get(self, path: str, *, who: str | None = "requester") -> httpx.Response:
        return await self.client.get(path, headers={} if who is None else self.bearer(who))

    async def post(self, body: Any, *, who: str | None = "requester", path: str = "/aip/v1/messages") -> httpx.Response:
        return await self.client.post(path, json=body, headers={} if who is None else self.bearer(who))


def make_site(folder: Path, *, extra: str = "", opened: bool = True) -> Site:
    """Compose a site. The caller closes `client`."""
    settings = site_settings(folder, extra=extra)
    clock, runtime = FixedClock(), ScriptedRuntime()
    gateway = Gateway(
        settings=settings, tokens=TokenTable.of(settings, clock=clock), clock=clock, new_id=counting_ids()
    )
    catalog = Catalog(
        [*endpoint_offers("primary", tenant_id="tenant-a"), *endpoint_offers("other", tenant_id="tenant-b")]
    )
    if opened:
        gateway.open(runtime, catalog)
    transport = httpx.ASGITransport(app=native_application(gateway))
    client = httpx.AsyncClient(transport=transport, base_url="http://aip.test")
    return Site(settings=settings, gateway=gateway, runtime=runtime, clock=clock, client=client, catalog=catalog)


def message(body: Mapping[str, Any], *, message_id: str = "msg_1", **members: Any) -> dict[str, Any]:
    """Return an envelope sent at the site's present."""
    [key] = body
    return {
        "aip_version": "1.0",
        "message_type": wire.MESSAGE_TYPES[key],
        "message_id": message_id,
        "sent_at": wire.rfc3339(NOW_MS),
        "body": dict(body),
        **members,
    }


def action_message(*, message_id: str = "msg_1", input: Any = None, **members: Any) -> dict[str, Any]:
    """Return an envelope with a read action."""
    action = {
        "id": "act_1",
        "capability_id": "cap:hermes_agent:primary:session_get",
        "input": {"session_id": "s"} if input is None else input,
        "mode": "sync",
    }
    return message({"action": action}, message_id=message_id, **members)
