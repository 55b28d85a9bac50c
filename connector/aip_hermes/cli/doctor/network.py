"""Whether the port is free or ours, and whether each endpoint answers and takes its key."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Final

from aip_hermes.cli.doctor.finding import Finding, fail, fine, warn
from aip_hermes.cli.doctor.sockets import listens
from aip_hermes.database import AlreadyOwned
from aip_hermes.hermes import Endpoint
from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.exchange import ExchangeFailed, RequestSpec
from aip_hermes.hermes.headers import base_headers
from aip_hermes.ids import EndpointId
from aip_hermes.server.listening import WILDCARDS, CannotServe, listen
from aip_hermes.settings import Settings

__all__ = ["endpoints", "port"]

_PATIENCE_S: Final = 5.0


async def port(settings: Settings, holder: AlreadyOwned | None) -> Finding:
    """Whether the server could listen, or does. holder: who has the data folder."""
    host, number = settings.server.host, settings.server.port
    if number == 0:
        return fine("port", "a free port is picked at each start")
    where = f"{host} port {number}"
    service = await _service_at(host, number)
    if service == settings.server.service_id and holder is not None:
        return _same_service(where, number, holder)
    if service is not None:
        remedy = f"stop it, or write another `port` under [server] in {settings.path}"
        return fail("port", f"{where} is used by {service or 'another program'}", remedy)
    if holder is not None:
        remedy = "ask again in a moment; a server started with --port listens elsewhere, then this is as it should be"
        return warn("port", f"a server has the data folder and does not answer at {where}", remedy)
    try:
        listen(host, number, advice="choose another").close()
    except CannotServe as error:
        return fail("port", str(error), f"write another `host` or `port` under [server] in {settings.path}")
    return fine("port", f"{where} is free")


def _same_service(where: str, number: int, holder: AlreadyOwned) -> Finding:
    """Return whether the server that answers is the one that has the data folder: others bear the same name."""
    found = None if holder.pid is None else listens(holder.pid, number)
    if found is None:
        return fine("port", f"{where}: a server of this name answers; whether it has the data folder can't be seen")
    if found:
        return fine("port", f"{where}: our server answers (process {holder.pid})")
    remedy = "a server started with --port listens elsewhere, then this is as it should be; else stop one of the two"
    return warn("port", f"another server answers at {where}; process {holder.pid} has the data folder", remedy)


async def endpoints(configured: Sequence[Endpoint]) -> list[Finding]:
    """One line per endpoint."""
    return list(await asyncio.gather(*(_endpoint(endpoint) for endpoint in configured)))


async def _endpoint(endpoint: Endpoint) -> Finding:
    name = f"{endpoint.id} at {endpoint.base_url}"
    async with HermesClient(endpoint) as client:
        try:
            alive = (await client.send(_read("/health", endpoint, auth=False))).status
            if endpoint.key is None:
                return warn(
                    "endpoint", f"{name} has no key, so only `health` works", "write `key_file` in its [[endpoints]]"
                )
            shown = (await client.send(_read("/api/sessions?limit=1", endpoint, auth=True))).status
        except ExchangeFailed as error:
            return fail("endpoint", f"{name} gave no answer: {error.reason.replace('_', ' ')}", _REMEDIES[error.reason])
    if shown in (401, 403):
        mark = hashlib.sha256(endpoint.key.reveal().encode()).hexdigest()[:8]
        remedy = "write the API_SERVER_KEY of that server into the endpoint's key_file"
        return fail("endpoint", f"{name} answers and refuses the key (HTTP {shown}; key with SHA-256 {mark}…)", remedy)
    if not 200 <= shown < 300:
        remedy = "look at that server's own log; is base_url the API server, and not a page in front of it?"
        return fail("endpoint", f"{name} answered HTTP {alive} to /health and {shown} to a list of sessions", remedy)
    return fine("endpoint", f"{name} answers and takes the key")


_START: Final = "start that Hermes, or correct base_url"
_REMEDIES: Final = {
    "refused": _START,
    "unreachable": "is that machine reachable from here? else correct base_url",
    "unresolved": "correct the host name in base_url",
    "connect_timeout": "is that machine reachable from here? else correct base_url",
    "tls": "is base_url https, and its certificate one that this machine trusts?",
    "proxy": "correct the proxy variables of the environment, or set NO_PROXY for that host",
    "timeout": "look at that server's own log; it took the connection and said nothing",
    "idle": "look at that server's own log; it took the connection and said nothing",
    "broken": "look at that server's own log; it broke the connection",
    "too_large": "is base_url the API server, and not a page in front of it?",
}


def _read(target: str, endpoint: Endpoint, *, auth: bool) -> RequestSpec:
    headers = base_headers(endpoint, auth=auth, body=False)
    return RequestSpec(method="GET", target=target, headers=headers, body=None, timeout_s=_PATIENCE_S, mutation=False)


async def _service_at(host: str, number: int) -> str | None:
    """Return which service answers there; empty for a program that is none of ours, None where nobody listens."""
    place = WILDCARDS.get(host, "127.0.0.1" if host == "localhost" else host)
    shown = f"[{place}]" if ":" in place else place
    here = Endpoint(id=EndpointId("here"), base_url=f"http://{shown}:{number}/")
    async with HermesClient(here) as client:
        try:
            answer = await client.send(_read("/aip/v1/health", here, auth=False))
            said = json.loads(answer.body)
            service = said["service"] if isinstance(said, dict) else None
        except ExchangeFailed as error:
            return None if error.reason in ("refused", "unreachable", "unresolved", "connect_timeout") else ""
        except (ValueError, KeyError):
            return ""
    return service if isinstance(service, str) and service.startswith("service:") and len(service) < 600 else ""
