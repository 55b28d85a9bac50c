"""The composed server before an embedded endpoint, each behind a real listener, for clients that speak to both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aip_hermes.client import AipClient, HermesClient, IdentityStore
from aip_hermes.embedded import Model
from aip_hermes.ids import CapabilityId, HermesSessionId
from aip_hermes.secret import Secret
from aip_hermes.settings import Settings
from tests.support.cutting_relay import CuttingRelay
from tests.support.embedded_endpoint import KEY, Running, served
from tests.support.server_serving import serving, written_settings
from tests.support.server_site import write_secret

__all__ = ["ClientSite", "cap", "client_site", "sid"]


def cap(operation: str) -> CapabilityId:
    """Return the capability of an operation of the site's endpoint."""
    return CapabilityId(f"cap:hermes_agent:primary:{operation}")


def sid(text: str) -> HermesSessionId:
    """Return a session id."""
    return HermesSessionId(text)


@dataclass(frozen=True, kw_only=True)
class ClientSite:
    """endpoint: the embedded Hermes, for arranging and looking. front: before the server, loses answers to clients.
    back: before the endpoint, loses answers to the server. stop: ends the server.
    """

    hermes_url: str
    folder: Path
    endpoint: Running
    front: CuttingRelay
    back: CuttingRelay
    stop: asyncio.Event

    @property
    def url(self) -> str:
        """Of the server, through `front`."""
        return self.front.url.rstrip("/")

    def client(self, who: str = "requester", *, store: IdentityStore | None = None, **options: Any) -> AipClient:
        return AipClient(base_url=self.url, token_file=self.folder / "tokens" / who, store=store, **options)

    def hermes(self, **options: Any) -> HermesClient:
        return HermesClient(base_url=self.hermes_url, key=Secret(KEY), **options)


@asynccontextmanager
async def client_site(folder: Path, *, model: Model | None = None) -> AsyncIterator[ClientSite]:
    """Serve both until the block ends."""
    async with (
        served(folder, model=model) as endpoint,
        CuttingRelay(str(endpoint.client.base_url)) as back,
    ):
        settings = written_settings(folder, endpoint_url=back.url)
        write_secret(folder / "hermes.key", KEY)
        async with (
            serving(Settings.load(settings.path)) as (http, stop),
            CuttingRelay(str(http.base_url)) as front,
        ):
            yield ClientSite(
                hermes_url=str(endpoint.client.base_url).rstrip("/") + "/",
                folder=folder,
                endpoint=endpoint,
                front=front,
                back=back,
                stop=stop,
            )
