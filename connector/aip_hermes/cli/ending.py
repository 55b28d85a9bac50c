"""How a body of `aip-hermes` ends: what a person can mend is one sentence, a signal stops it, a closed pipe is said.

Imports nothing that a command may not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import click

__all__ = ["Program", "cancelled_by_signals", "guarded", "run"]


class Program(click.Group):
    """Ends with 130 wherever it is interrupted; left to itself, click says "Aborted!" and 1 outside of the bodies."""

    def main(self, *args: Any, standalone_mode: bool = True, **more: Any) -> Any:
        run: Any = super().main  # of many signatures, all passed on
        if not standalone_mode:
            return run(*args, standalone_mode=False, **more)
        try:
            code = run(*args, standalone_mode=False, **more)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            print("aip-hermes: stopped", file=sys.stderr)
            code = 130
        sys.exit(code)


async def cancelled_by_signals(work: Coroutine[Any, Any, Any]) -> Any:
    """Let Ctrl-C, SIGTERM and a closed terminal cancel the work once: it takes its children and its folder along.

    That is bounded, so a second Ctrl-C doesn't cut it short and leave half of it behind.
    """
    import asyncio
    import signal

    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, lambda: None if task.cancelling() else task.cancel())
    return await task


def run(work: Coroutine[Any, Any, Any]) -> Any:
    import asyncio

    return guarded(lambda: asyncio.run(work))


def guarded(body: Any) -> Any:
    """Run `body`; what a person can mend becomes one sentence on stderr and exit status 1."""
    import asyncio

    from aip_hermes.cli.address import AddressRefused
    from aip_hermes.cli.children import ChildFailed
    from aip_hermes.cli.home import HomeRefused
    from aip_hermes.client import ClientFailure
    from aip_hermes.database import AlreadyOwned, StoreFailure
    from aip_hermes.secret import SecretFileError
    from aip_hermes.server.listening import CannotServe
    from aip_hermes.settings import SettingsError

    mendable = (
        AddressRefused,
        AlreadyOwned,
        CannotServe,
        ChildFailed,
        ClientFailure,
        HomeRefused,
        SecretFileError,
        SettingsError,
        StoreFailure,
    )
    status = 1
    try:
        result = body()
        sys.stdout.flush()
        return result
    except mendable as error:
        print(f"aip-hermes: {error}", file=sys.stderr)
    except BrokenPipeError:
        print("aip-hermes: stopped, because nobody reads its output any more", file=sys.stderr)
    except OSError as error:
        print(f"aip-hermes: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("aip-hermes: stopped", file=sys.stderr)
        status = 130
    drop_unwritable_output()
    sys.exit(status)


def drop_unwritable_output() -> None:
    """Let the interpreter's last flush not fail again on output that nobody takes."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
