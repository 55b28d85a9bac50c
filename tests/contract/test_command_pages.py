"""The page of commands, held against the commands: every one is there, as its help says, with its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from aip_hermes.cli.aip_hermes import main
from aip_hermes.cli.aipctl.command import aipctl
from tests.support import client_answers as answers
from tests.support.client_command import invoke_aipctl
from tests.support.client_stub_server import Answer, Request, running_stub

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
ROWS = {
    command: (does, {int(code) for code in codes.split(", ")})
    for command, does, codes in re.findall(r"^\| `(aip[^`]+)` \| (.+) \| ([0-9, ]+) \|$", PAGE, flags=re.MULTILINE)
}

GIVEN = {
    "ACTION_ID": "act_1",
    "AIP_SESSION_ID": "sess_1",
    "APPROVAL_ID": "appr_1",
    "CAPABILITY": "cap:x",
    "PATH": "none.json",
}
NEEDED = {
    "receipt get": ["--chain-id", "approval:appr_1"],
    "transaction get": ["--transaction-id", "t1"],
    "approval approve": ["--reason", "checked"],
    "approval deny": ["--reason", "checked"],
    "approval revoke": ["--reason", "checked", "--target", "decision_of_reviewer"],
}
DECISION = (
    '{"approval_id": "appr_1", "decision": "denied", "decided_at": "2030-01-01T00:00:00Z",'
    ' "approver": {"id": "human:b", "kind": "human"}}'
)
REQUEST = answers.approval_request()


def _leaves(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield (command with its arguments, first line of its help)."""
    if isinstance(command, click.Group):
        for part, each in command.commands.items():
            if not each.hidden:
                yield from _leaves(each, f"{name} {part}")
        return
    context = click.Context(command)
    arguments = [each.make_metavar(context) for each in command.params if isinstance(each, click.Argument)]
    yield " ".join([name, *arguments]), command.get_short_help_str(limit=300)


@pytest.mark.requirement("commands:reference")
def test_the_page_has_every_command_with_the_line_of_its_help() -> None:
    told = {command: does for command, (does, _) in ROWS.items()}
    assert told == dict([*_leaves(aipctl, "aipctl"), *_leaves(main, "aip-hermes")])


def _words(command: str, url: str) -> list[str]:
    name = " ".join(word for word in command.split()[1:] if word.islower())
    json_of = {"approval decide": DECISION, "approval request": json.dumps(REQUEST)}
    values = {**GIVEN, "URL": url, "J": json_of.get(name, "{}")}
    return [*(values.get(word.strip("[]"), word) for word in command.split()[1:]), *NEEDED.get(name, [])]


REMOTE = [command for command in ROWS if " URL" in command]
LOOKS = frozenset({"aipctl action reconcile URL [ACTION_ID]"})
"""Commands whose 4 is what they found, not an answer that they lost: they only read."""


@pytest.mark.requirement("commands:exit-codes")
@pytest.mark.parametrize("command", REMOTE)
def test_without_an_answer_a_command_exits_as_the_page_says(command: str) -> None:
    codes = ROWS[command][1]
    sends = 4 in codes and command not in LOOKS

    def answer(request: Request) -> Answer:
        if request.method == "GET" and sends:
            return answers.read_routes(request)
        return Answer(fate="cut")

    with running_stub(answer) as stub:
        done = invoke_aipctl(*_words(command, stub.url))
    assert {0, 1, 2, 130} <= codes
    assert (done.exit_code, done.stdout) == (4 if sends else 1, "")
    assert ("the outcome is unknown" in done.stderr) is sends
    assert isinstance(done.exception, SystemExit)
    assert stub.requests


@pytest.mark.requirement("commands:exit-codes")
@pytest.mark.parametrize("command", [command for command in ROWS if command.startswith("aipctl ")])
def test_a_wrong_command_line_is_a_usage_error_of_every_command(command: str) -> None:
    assert 2 in ROWS[command][1]
    with running_stub(answers.read_routes) as stub:
        done = invoke_aipctl(*_words(command, stub.url), "--no-such-option")
        assert stub.requests == []
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.requirement("commands:exit-codes")
def test_the_page_explains_every_exit_code_that_it_names() -> None:
    rows = re.findall(r"^\| ([0-9, ]+) \|", PAGE, flags=re.MULTILINE)
    explained = {int(code) for row in rows for code in row.split(", ")}
    assert set().union(*(codes for _, codes in ROWS.values())) == explained
