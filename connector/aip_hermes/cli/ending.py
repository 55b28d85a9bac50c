"""How a body of `aip-hermes` ends: what a person can mend is one sentence, a signal stops it, a closed pipe is said.

Imports nothing that a command may not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import click

__all__ = ["MENDABLE", "Program", "cancelled_by_signals", "guarded", "run", "stoppable"]


MENDABLE: Final = {
    "aip_hermes.cli.address": "AddressRefused",
    "aip_hermes.cli.children": "ChildFailed",
    "aip_hermes.cli.home": "HomeRefused",
    "aip_hermes.cli.sessions.refused": "SessionsRefused",
    "aip_hermes.client.failures": "ClientFailure",
    "aip_hermes.database.failures": "StoreFailure",
    "aip_hermes.database.owner": "AlreadyOwned",
    "aip_hermes.secret": "SecretFileError",
    "aip_hermes.server.listening": "CannotServe",
    "aip_hermes.settings.values": "SettingsError",
}
"""Where the exceptions are defined that a person can mend by what their text says."""


_STEPS: Final[Mapping[type[OSError], str]] = {
    FileNotFoundError: "compare the name with what is there",
    PermissionError: "ask its owner, or use their account",
    IsADirectoryError: "name a file",
    NotADirectoryError: "name another folder",
}


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

    status = 1
    try:
        result = body()
        sys.stdout.flush()
        return result
    except BrokenPipeError:
        print("aip-hermes: stopped, because nobody reads its output any more", file=sys.stderr)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("aip-hermes: stopped", file=sys.stderr)
        status = 130
    except Exception as error:
        if isinstance(error, _mendable()):
            step = getattr(error, "next_step", "")
            print(f"aip-hermes: {error}; {step}" if step else f"aip-hermes: {error}", file=sys.stderr)
        elif isinstance(error, OSError):
            print(f"aip-hermes: {_of_the_system(error)}", file=sys.stderr)
        else:
            raise
    drop_unwritable_output()
    sys.exit(status)


def _of_the_system(error: OSError) -> str:
    said = error.strerror or str(error)
    if error.filename:
        said = f"{error.filename}: {said[:1].lower()}{said[1:]}"
    step = _STEPS.get(type(error), "")
    return f"{said}; {step}" if step else said


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, so that a draft is removed."""
    import signal

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _mendable() -> tuple[type[Exception], ...]:
    """Return the classes that say themselves what to do. One whose module was never loaded was never raised."""
    return tuple(getattr(sys.modules[module], name) for module, name in MENDABLE.items() if module in sys.modules)


def drop_unwritable_output() -> None:
    """Let the interpreter's last flush not fail again on output that nobody takes."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
