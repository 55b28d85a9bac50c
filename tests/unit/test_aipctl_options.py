"""Global options: where they may stand, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from aip_hermes.cli.aipctl.options import GlobalOptions, current_options, global_options, resolve

_FLAGS = ("--native-bearer-token", "--native-bearer-token-file", "--native-principal-id", "--native-tls-ca-file",
          "--native-max-response-bytes")  # fmt: skip


@click.group()
@global_options
def root() -> None:
    """A root."""


@root.group()
@global_options
def middle() -> None:
    """A group."""


@middle.command()
@click.argument("word")
@global_options
def leaf(word: str) -> None:
    """A command."""
    options = current_options()
    click.echo(f"{word} {options.principal_id} {options.token_file} {options.max_response_bytes} {options.token}")


def _run(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    done = CliRunner(env={**dict.fromkeys(_variables()), **(env or {})}).invoke(root, arguments)
    return done.exit_code, done.output.strip()


def _variables() -> list[str]:
    return [prefix + flag[2:].upper().replace("-", "_") for flag in _FLAGS for prefix in ("GETAIP_", "AIP_")]


@pytest.mark.requirement("aipctl:options:anywhere")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--native-principal-id", "human:a", "middle", "leaf", "W"),
        ("middle", "--native-principal-id", "human:a", "leaf", "W"),
        ("middle", "leaf", "--native-principal-id", "human:a", "W"),
        ("middle", "leaf", "W", "--native-principal-id", "human:a"),
        ("middle", "leaf", "W", "--native-principal-id=human:a"),
        ("--native-principal-id", "human:b", "middle", "leaf", "W", "--native-principal-id", "human:a"),
        ("--native-principal-id", "human:b", "middle", "--native-principal-id", "human:a", "leaf", "W"),
    ],
)
def test_an_option_stands_anywhere_and_the_nearest_wins(arguments: tuple[str, ...]) -> None:
    assert _run(*arguments) == (0, "W human:a None 4194304 None")


@pytest.mark.requirement("aipctl:options:anywhere")
@pytest.mark.parametrize("path", [(), ("middle",), ("middle", "leaf")])
def test_every_level_lists_every_option(path: tuple[str, ...]) -> None:
    output = _run(*path, "--help")[1]
    assert [flag for flag in _FLAGS if flag not in output] == []


@pytest.mark.requirement("aipctl:options:environment", "client:token:not-shown")
def test_help_shows_the_name_of_a_variable_and_never_its_value() -> None:
    _, output = _run("middle", "leaf", "--help", env={"GETAIP_NATIVE_BEARER_TOKEN": "the-secret-itself"})
    assert "GETAIP_NATIVE_BEARER_TOKEN" in output
    assert "the-secret-itself" not in output


@pytest.mark.requirement("aipctl:options:environment")
@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ({}, {}, {}),
        ({}, {"GETAIP_NATIVE_BEARER_TOKEN": "t"}, {"token": "t"}),
        ({}, {"AIP_NATIVE_BEARER_TOKEN": "t"}, {"token": "t"}),
        ({}, {"GETAIP_NATIVE_BEARER_TOKEN": "t", "AIP_NATIVE_BEARER_TOKEN": "u"}, {"token": "t"}),
        ({}, {"GETAIP_NATIVE_BEARER_TOKEN": " ", "AIP_NATIVE_BEARER_TOKEN": "u"}, {"token": "u"}),
        ({}, {"GETAIP_NATIVE_BEARER_TOKEN_FILE": "/f"}, {"token_file": Path("/f")}),
        ({"native_bearer_token": "a"}, {"GETAIP_NATIVE_BEARER_TOKEN": "t"}, {"token": "a"}),
        ({"native_bearer_token_file": "/g"}, {"GETAIP_NATIVE_BEARER_TOKEN": "t"}, {"token_file": Path("/g")}),
        ({"native_principal_id": "a:b"}, {}, {"principal_id": "a:b"}),
        ({"native_principal_id": "a:b"}, {"GETAIP_NATIVE_PRINCIPAL_ID": "c:d"}, {"principal_id": "c:d"}),
        ({"native_max_response_bytes": "5"}, {}, {"max_response_bytes": 5}),
        ({"native_max_response_bytes": "5"}, {"GETAIP_NATIVE_MAX_RESPONSE_BYTES": "6"}, {"max_response_bytes": 6}),
        ({"native_tls_ca_file": "/ca"}, {"GETAIP_NATIVE_TLS_CA_FILE": "/other"}, {"tls_ca_file": Path("/ca")}),
    ],
)
def test_command_line_and_environment_are_merged(
    given: dict[str, str], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    assert resolve(given, environ) == GlobalOptions(**expected)


@pytest.mark.requirement("aipctl:options:environment")
@pytest.mark.parametrize(
    ("given", "environ"),
    [
        ({"native_bearer_token": "a", "native_bearer_token_file": "/f"}, {}),
        ({}, {"GETAIP_NATIVE_BEARER_TOKEN": "a", "AIP_NATIVE_BEARER_TOKEN_FILE": "/f"}),
        ({"native_bearer_token_file": ""}, {}),
        ({"native_principal_id": " "}, {}),
        ({"native_max_response_bytes": "0"}, {}),
        ({"native_max_response_bytes": "many"}, {}),
        ({}, {"GETAIP_NATIVE_MAX_RESPONSE_BYTES": "-1"}),
    ],
)
def test_contradictions_and_blanks_are_usage_errors(given: dict[str, str], environ: dict[str, str]) -> None:
    with pytest.raises(click.UsageError):
        resolve(given, environ)


@pytest.mark.requirement("client:token:not-shown")
def test_the_options_do_not_show_their_token() -> None:
    assert "very-secret" not in repr(GlobalOptions(token="very-secret"))
