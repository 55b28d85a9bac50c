"""`aipctl session`: AIP sessions, which are no Hermes transcripts; a server of ours keeps none, another one may."""

from __future__ import annotations

import shlex
from typing import Any

import click

from aip_hermes.cli.aipctl.arguments import AIP_SESSION_ID, PRINCIPAL_ID, TEXT, URL
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.records import say_more
from aip_hermes.cli.aipctl.running import Sent, run
from aip_hermes.cli.aipctl.terminal import print_json
from aip_hermes.ids import AipSessionId

__all__ = ["session"]


@click.group()
@global_options
def session() -> None:
    """AIP sessions. A Hermes transcript is none: see `aipctl transcript`."""


@session.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--principal-id", metavar="ID", type=PRINCIPAL_ID)
@click.option("--status", metavar="S", type=TEXT)
@click.option("--cursor", metavar="C", type=TEXT, help="`cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Sessions of a page, at most 1000.")
@global_options
def session_list(url: str, **params: Any) -> None:
    """Print a page of AIP sessions."""
    answer = run(url, lambda connection: connection.aip_sessions(**params))
    print_json(answer)
    say_more(answer["session_list"])


@session.command("get")
@click.argument("url", metavar="URL", type=URL)
@click.argument("session_id", metavar="AIP_SESSION_ID", type=AIP_SESSION_ID)
@global_options
def session_get(url: str, session_id: AipSessionId) -> None:
    """Print one AIP session."""
    print_json(run(url, lambda connection: connection.aip_session(session_id)))


@session.command("close")
@click.argument("url", metavar="URL", type=URL)
@click.argument("session_id", metavar="AIP_SESSION_ID", type=AIP_SESSION_ID)
@click.option("--reason", metavar="R", type=TEXT, help="Kept with the session.")
@global_options
def session_close(url: str, session_id: AipSessionId, reason: str | None) -> None:
    """Close an AIP session, and print it."""
    closing = _sent(url, session_id, "the wish to close")
    print_json(run(url, lambda connection: connection.close_aip_session(session_id, reason), sent=closing))


@session.command("resume")
@click.argument("url", metavar="URL", type=URL)
@click.argument("session_id", metavar="AIP_SESSION_ID", type=AIP_SESSION_ID)
@click.option("--resume-token", metavar="T", type=TEXT, help="As the server gave it with the session.")
@click.option("--last-event-cursor", metavar="C", type=TEXT, help="Of the last event that was seen.")
@global_options
def session_resume(url: str, session_id: AipSessionId, resume_token: str | None, last_event_cursor: str | None) -> None:
    """Take an AIP session up again, and print what it answers."""
    answer = run(
        url,
        lambda connection: connection.resume_aip_session(
            session_id, resume_token=resume_token, last_event_cursor=last_event_cursor
        ),
        sent=_sent(url, session_id, "the wish to resume"),
    )
    print_json(answer)


def _sent(url: str, session_id: AipSessionId, wish: str) -> Sent:
    query = f"aipctl session get {shlex.quote(url)} {session_id}"
    return Sent(subject=f"{wish} AIP session {session_id}", query=query)
