"""The embedded Hermes as a process of its own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from aip_hermes.cli.address import checked_url
from aip_hermes.cli.home import make_hermes_home
from aip_hermes.cli.ready import announce, stop_with_stdin
from aip_hermes.embedded import Model, UnsafeKey, check_key_strength, chosen_quirks, open_endpoint, planned_faults
from aip_hermes.embedded.agent.openai_model import OpenAIModel
from aip_hermes.log import configure
from aip_hermes.secret import read_secret_file
from aip_hermes.server.listening import CannotServe, listen, serve_asgi, stop_signals

__all__ = ["run_hermes"]


async def run_hermes(
    *,
    folder: Path,
    port: int,
    quirks: tuple[str, ...],
    faults: tuple[str, ...],
    model: str,
    model_url: str | None,
    model_key_file: Path | None,
    model_window: int | None,
    until_stdin_closes: bool,
) -> None:
    """Serve `folder` on loopback until told to stop. The key is made on first start: `folder`/key.

    Raises: AddressRefused, CannotServe, AlreadyOwned, StoreFailure, SecretFileError.
    """
    configure()
    stop = asyncio.Event()
    try:
        chosen_quirks(quirks)
    except ValueError as error:
        raise CannotServe(f"--quirk: {error}") from None
    try:
        planned_faults(faults)
    except ValueError as error:
        raise CannotServe(f"--fault: {error}") from None
    key_file = make_hermes_home(folder)
    async with AsyncExitStack() as stack:
        stack.enter_context(stop_signals(stop))
        if until_stdin_closes:
            await stop_with_stdin(stop)
        chosen = await _model(stack, model, model_url, model_key_file)
        key = read_secret_file(key_file)
        try:
            check_key_strength(key)
        except UnsafeKey as error:
            raise CannotServe(f"{key_file}: {error}; delete the file and a new key is made") from None
        application = await stack.enter_async_context(
            open_endpoint(folder, key=key, model=chosen, quirks=quirks, faults=faults, model_window=model_window)
        )
        listener = stack.enter_context(
            listen("127.0.0.1", port, advice="choose another with --port (0 picks a free one)")
        )
        await stack.enter_async_context(application.router.lifespan_context(application))
        await serve_asgi(
            application,
            listener,
            stop=stop,
            on_ready=lambda url: announce({"hermes_url": f"{url}/", "hermes_key_file": str(key_file.absolute())}),
        )


async def _model(stack: AsyncExitStack, name: str, url: str | None, key_file: Path | None) -> Model | None:
    if url is None:
        return None
    model = OpenAIModel(
        base_url=checked_url("--model-url", url),
        model=name,
        key=None if key_file is None else read_secret_file(key_file),
    )
    stack.push_async_callback(model.aclose)
    return model
