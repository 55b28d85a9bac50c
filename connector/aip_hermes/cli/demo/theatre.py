"""Builds the stage of the demo in a temporary folder and takes it down again, whatever happens in between."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aip_hermes.cli.address import AddressRefused
from aip_hermes.cli.children import Child
from aip_hermes.cli.demo.relay import Relay, Unreachable
from aip_hermes.cli.demo.step import Stage
from aip_hermes.cli.home import REQUESTER, REVIEWER, Home, authority_entry, make_home, write_new
from aip_hermes.client import AipConnection
from aip_hermes.secret import Secret, read_secret_file
from aip_hermes.settings import render_template

__all__ = ["theatre"]

STRANGER = "agent:elsewhere:stranger"


@asynccontextmanager
async def theatre(*, endpoint_url: str | None, key_file: Path | None, keep: bool) -> AsyncIterator[tuple[Stage, Path]]:
    """Start what is needed and yield the stage and its folder.

    endpoint_url, key_file: a Hermes that already runs; None starts the embedded one. keep: the folder stays afterwards.
    Raises: AddressRefused, ChildFailed, HomeRefused; children are stopped and the folder removed then, too.
    """
    folder = Path(tempfile.mkdtemp(prefix="aip-hermes-demo-"))
    async with AsyncExitStack() as stack:
        if not keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        home = make_home(folder)
        if endpoint_url is None:
            arguments = ["hermes", "--data", str(home.hermes), "--port", "0"]
            hermes = await _child(stack, "the embedded Hermes", arguments, folder / "hermes.log")
            endpoint_url, key_file = str(hermes.ready["hermes_url"]), Path(hermes.ready["hermes_key_file"])
        relay = await stack.enter_async_context(Relay(endpoint_url))
        await _reach(relay, endpoint_url)
        _write_settings(home, relay.url, key_file or home.hermes_key)
        server = await _child(
            stack, "the AIP server", ["serve", "--config", str(home.settings)], folder / "aip-server.log"
        )
        url = str(server.ready["aip_url"])
        yield (
            Stage(
                requester=await _connect(stack, url, read_secret_file(home.requester_token)),
                reviewer=await _connect(stack, url, read_secret_file(home.reviewer_token)),
                stranger=await _connect(stack, url, read_secret_file(folder / "tokens" / "stranger")),
                forger=await _connect(stack, url, Secret(secrets.token_urlsafe(32))),
                relay=relay,
            ),
            folder,
        )


async def _reach(relay: Relay, endpoint_url: str) -> None:
    try:
        await relay.check()
    except Unreachable as error:
        raise AddressRefused(
            f"the Hermes at {endpoint_url} can't be reached: {error}; start it, or correct --endpoint"
        ) from None


def _write_settings(home: Home, endpoint_url: str, key_file: Path) -> None:
    write_new(home.folder / "tokens" / "stranger", secrets.token_urlsafe(32) + "\n")
    # The requester gets the authority to decide, so that what refuses its own approval is the separation of duties.
    entries = [authority_entry(REVIEWER), authority_entry(REQUESTER)]
    home.authority.write_text(json.dumps(entries), encoding="utf-8")
    text = render_template(port=0, endpoint_url=endpoint_url, key_file=str(key_file.absolute()))
    stranger = f'\n[[tokens]]\nfile = "tokens/stranger"\nprincipal = "{STRANGER}"\ntenant = "elsewhere"\n'
    write_new(home.settings, text + stranger + 'scopes = ["action:read"]\n')


async def _child(stack: AsyncExitStack, name: str, arguments: list[str], log: Path) -> Child:
    child = await Child.start(name, arguments, log=stack.enter_context(log.open("wb")))
    stack.push_async_callback(child.stop)
    return child


async def _connect(stack: AsyncExitStack, url: str, token: Secret) -> AipConnection:
    return await stack.enter_async_context(AipConnection(base_url=url, token=token))
