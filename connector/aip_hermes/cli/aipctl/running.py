"""Runs one piece of work on one connection and turns every failure into lines on stderr and an exit code.

Exit codes: 1 failed, 2 usage, 4 the outcome is unknown, 130 interrupted (design D1).
"""

from __future__ import annotations

import asyncio
import shlex
import stat
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from aip_hermes.cli.aipctl import hints
from aip_hermes.cli.aipctl.decision_hints import step_after_refusal
from aip_hermes.cli.aipctl.options import GlobalOptions, current_options
from aip_hermes.cli.aipctl.terminal import say
from aip_hermes.ids import ActionId, ApprovalId, IdentityError, PrincipalId

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection, ClientFailure

__all__ = ["FAILED", "INTERRUPTED", "UNCERTAIN", "CommandFailed", "Sent", "run"]

FAILED = 1
UNCERTAIN = 4
INTERRUPTED = 130

_T = TypeVar("_T")


class CommandFailed(click.ClickException):
    """Ends the command: lines for stderr and the exit code."""

    def __init__(self, *lines: str, exit_code: int) -> None:
        super().__init__(lines[0])
        self.lines = lines
        # A code of this one failure, where click's classes have one each.
        vars(self)["exit_code"] = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        say(*self.lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """What may have reached the server when no answer came, and the command that looks it up.

    goes_on: what else can be done about something that goes on without this command.
    """

    subject: str
    query: str
    goes_on: tuple[str, ...] = ()

    @classmethod
    def action(cls, url: str, action_id: ActionId) -> Sent:
        return cls(
            subject=f"action {action_id}",
            query=f"aipctl action status {shlex.quote(url)} {action_id}",
            goes_on=hints.while_it_runs(url, action_id),
        )

    @classmethod
    def cancel(cls, url: str, action_id: ActionId) -> Sent:
        query = f"aipctl action status {shlex.quote(url)} {action_id}"
        return cls(subject=f"the wish to cancel action {action_id}", query=query)

    @classmethod
    def decision(cls, url: str, approval_id: ApprovalId | str) -> Sent:
        query = f"aipctl approval show {shlex.quote(url)} {shlex.quote(approval_id)}"
        return cls(subject=f"the decision on {approval_id}", query=query)


def run(
    url: str,
    work: Callable[[AipConnection], Awaitable[_T]],
    *,
    sent: Sent | None = None,
    action_id: ActionId | None = None,
    interrupted: Callable[[], Sequence[str]] = lambda: ("interrupted",),
) -> _T:
    """Open a connection with the global options, await `work`, close.

    sent: what `work` may change. action_id: what it reads. interrupted: what is said when a read is.
    Raises: CommandFailed, click.UsageError.
    """
    from pydantic import ValidationError

    from aip_hermes import wire
    from aip_hermes.client import ClientFailure

    options = current_options()
    try:
        return asyncio.run(_with_connection(url, options, work))
    except ClientFailure as exc:
        raise _command_failed(exc, url=url, sent=sent, action_id=action_id) from exc
    except ValidationError as exc:
        # Only what we send is validated, and before it is sent.
        raise click.UsageError("; ".join(["this can't be sent", *wire.violations(exc)])) from exc
    except KeyboardInterrupt:
        lines = interrupted()
        if sent is not None:
            lines = [f"interrupted: {sent.subject} may have reached the server", f"  next: {sent.query}", *sent.goes_on]
        raise CommandFailed(*lines, exit_code=INTERRUPTED) from None


async def _with_connection(url: str, options: GlobalOptions, work: Callable[[AipConnection], Awaitable[_T]]) -> _T:
    from aip_hermes.client import DEFAULT_PRINCIPAL, AipConnection, load_token

    try:
        principal_id = PrincipalId(options.principal_id) if options.principal_id else DEFAULT_PRINCIPAL
    except IdentityError as exc:
        raise click.UsageError(f"--native-principal-id: {exc}") from exc
    try:
        connection = AipConnection(
            base_url=url,
            token=load_token(value=options.token, file=options.token_file),
            principal_id=principal_id,
            max_response_bytes=options.max_response_bytes,
            tls_ca_file=_checked_ca_file(options.tls_ca_file),
        )
    except ValueError as exc:
        raise click.UsageError(f"URL: {exc}") from exc
    async with connection:
        return await work(connection)


def _command_failed(exc: ClientFailure, *, url: str, sent: Sent | None, action_id: ActionId | None) -> CommandFailed:
    from aip_hermes.client import AlreadyDecided, PeerError

    lines = [exc.report if isinstance(exc, PeerError) else exc.message]
    lines += hints.about_details(exc.details)
    # A message that only asks is posted too: without an answer there is nothing that may have happened.
    if exc.uncertain and sent is not None:
        lines += [f"  {sent.subject}: the outcome is unknown", f"  next, before sending anything again: {sent.query}"]
        return CommandFailed(*lines, exit_code=UNCERTAIN)
    decided = sent.query if sent is not None and isinstance(exc, AlreadyDecided) else None
    next_step = (
        exc.next_step
        or decided
        or step_after_refusal(exc.details.get("code"), url=url)
        or hints.next_step(exc.code, category=exc.category, retryable=exc.retryable, url=url, action_id=action_id)
    )
    return CommandFailed(*lines, *([f"  next: {next_step}"] if next_step else []), exit_code=FAILED)


def _checked_ca_file(path: Path | None) -> Path | None:
    """Refuse a file of authorities that others could have written. Source: token and secret files, public files."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError as exc:
        raise click.UsageError(f"--native-tls-ca-file {path} can't be read: {exc.strerror}") from exc
    if not stat.S_ISREG(status.st_mode):
        raise click.UsageError(f"--native-tls-ca-file {path} is no regular file")
    if status.st_mode & 0o022:
        raise click.UsageError(f"--native-tls-ca-file {path} is writable by others; run `chmod go-w {path}`")
    return path
