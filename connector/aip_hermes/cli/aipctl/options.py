"""The options that every command takes, before or after the subcommand; the nearest value wins.

Precedence: the command line before the environment, except for the two names that say otherwise (`_ENVIRONMENT_WINS`).
An empty environment variable is an absent one. Source: command-line client, global options.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["GlobalOptions", "current_options", "global_options", "resolve"]

DEFAULT_MAX_RESPONSE_BYTES = 4_194_304

_F = TypeVar("_F", bound=Callable[..., Any])
_META = "aip_hermes.aipctl.options"

_ENVIRONMENT_WINS = frozenset({"native_principal_id", "native_max_response_bytes"})
_IN_ENVIRONMENT = (
    "native_bearer_token",
    "native_bearer_token_file",
    "native_principal_id",
    "native_max_response_bytes",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GlobalOptions:
    """What the options of all levels and the environment came to.

    At most one of token and token_file is set. principal_id: None when nobody named one.
    """

    token: str | None = None
    token_file: Path | None = None
    principal_id: str | None = None
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    tls_ca_file: Path | None = None

    def __repr__(self) -> str:
        return f"GlobalOptions(token={'***' if self.token else None}, token_file={self.token_file!r})"


def global_options(command: _F) -> _F:
    """Add the global options to a group or a command. They are not passed on: see `current_options`."""
    decorators = [
        _option(
            "--native-bearer-token", metavar="TOKEN", help="Bearer token. A file keeps it out of the process list."
        ),
        _option("--native-bearer-token-file", metavar="FILE", help="File of the bearer token, mode 0600."),
        _option("--native-principal-id", metavar="ID", help="Who writes (unverified). Default agent:getaip:cli."),
        _option("--native-tls-ca-file", metavar="FILE", help="Certificate authorities trusted besides the usual ones."),
        _option("--native-max-response-bytes", metavar="N", help="Longest answer read. Default 4194304."),
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def current_options() -> GlobalOptions:
    """Return what holds for the running command. Raises: click.UsageError."""
    return resolve(click.get_current_context().meta.get(_META, {}), os.environ)


def resolve(given: Mapping[str, str], environ: Mapping[str, str]) -> GlobalOptions:
    """Merge command line and environment. given: by name as in `native_bearer_token`.

    Raises: click.UsageError for two tokens from one place, an empty value, a number that is none.
    """
    for name, value in given.items():
        if not value.strip():
            raise click.UsageError(f"{_flag(name)} is empty; was a shell variable not set?")
    found = {name: text for name in _IN_ENVIRONMENT if (text := _from_environment(name, environ))}
    _refuse_two_tokens(given, "give one of --native-bearer-token and --native-bearer-token-file, not both")
    token_given = "native_bearer_token" in given or "native_bearer_token_file" in given
    if token_given:
        found = {name: value for name, value in found.items() if not name.startswith("native_bearer_token")}
    _refuse_two_tokens(
        found, "set one of GETAIP_NATIVE_BEARER_TOKEN and GETAIP_NATIVE_BEARER_TOKEN_FILE in the environment, not both"
    )
    values = {**found, **given, **{name: value for name, value in found.items() if name in _ENVIRONMENT_WINS}}
    token_file = values.get("native_bearer_token_file")
    ca_file = values.get("native_tls_ca_file")
    return GlobalOptions(
        token=values.get("native_bearer_token"),
        token_file=Path(token_file) if token_file else None,
        principal_id=values.get("native_principal_id"),
        max_response_bytes=_positive(values.get("native_max_response_bytes")),
        tls_ca_file=Path(ca_file) if ca_file else None,
    )


def _option(flag: str, *, metavar: str, help: str) -> Callable[[_F], _F]:
    name = flag.removeprefix("--").replace("-", "_")
    variable = f" [env: GETAIP_{name.upper()}]" if name in _IN_ENVIRONMENT else ""
    return click.option(flag, name, metavar=metavar, help=help + variable, expose_value=False, callback=_keep)


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    # The outer level is parsed first, so the nearest value is the last one written.
    if value is not None and parameter.name is not None:
        context.meta.setdefault(_META, {})[parameter.name] = value


def _from_environment(name: str, environ: Mapping[str, str]) -> str | None:
    for prefix in ("GETAIP_", "AIP_"):
        value = environ.get(prefix + name.upper(), "")
        if value.strip():
            return value
    return None


def _refuse_two_tokens(values: Mapping[str, str], text: str) -> None:
    if "native_bearer_token" in values and "native_bearer_token_file" in values:
        raise click.UsageError(text)


def _positive(text: str | None) -> int:
    if text is None:
        return DEFAULT_MAX_RESPONSE_BYTES
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise click.UsageError("--native-max-response-bytes (GETAIP_NATIVE_MAX_RESPONSE_BYTES) is a positive number")
    return value


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
