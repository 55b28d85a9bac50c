"""A real hermes-agent on loopback, made and started by the tests alone.

It lives in an environment of its own, made once from the package index, with a home of its own; whatever would reach
out is switched off, and its proxy settings lead to an address where nobody listens.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.real.model import NAME, ScriptedModel

__all__ = ["RELEASE", "NoRealHermes", "RealHermes", "hermes_environment", "running_hermes"]

RELEASE: Final = "0.19.0"
_REQUIREMENTS: Final = (f"hermes-agent=={RELEASE}", "aiohttp>=3.9,<4")
_ENVIRONMENT: Final = Path(__file__).parents[2] / ".venv-hermes"
_READY_S: Final = 120.0
_INSTALL_S: Final = 900.0
# Started by its function: run as a module it would exist twice, and one copy would not know that the other drains.
_START: Final = "from gateway.run import main; main()"
_QUIET: Final[Mapping[str, Any]] = {
    "approvals": {"mode": "manual"},
    "auxiliary": {"title_generation": {"enabled": False}},
    "curator": {"enabled": False},
    "kanban": {"dispatch_in_gateway": False},
    "lsp": {"enabled": False},
    "memory": {"nudge_interval": 0},
    "model_catalog": {"enabled": False},
    "security": {"allow_lazy_installs": False, "tirith_enabled": False},
    "skills": {"creation_nudge_interval": 0},
}


class NoRealHermes(Exception):
    """It cannot be had here; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RealHermes:
    """url: without a path. key_file: owner-only. model: what answers for it. home: its HERMES_HOME."""

    url: str
    key: str
    key_file: Path
    model: ScriptedModel
    home: Path


def hermes_environment() -> Path:
    """Return the Python of the environment, made where it is missing. Raises NoRealHermes."""
    if not (3, 11) <= sys.version_info < (3, 14):
        raise NoRealHermes(f"hermes-agent {RELEASE} needs Python 3.11, 3.12 or 3.13")
    python, stamp = _ENVIRONMENT / "bin" / "python", _ENVIRONMENT / ".installed"
    wanted = "\n".join((*_REQUIREMENTS, sys.version))
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"Installing hermes-agent {RELEASE} into {_ENVIRONMENT.name} (once, a minute or two) ...", file=sys.stderr)  # noqa: T201
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], check=True, timeout=_INSTALL_S)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_REQUIREMENTS]
        subprocess.run(install, check=True, timeout=_INSTALL_S, stdout=sys.stderr)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoRealHermes(f"hermes-agent {RELEASE} could not be installed: {type(error).__name__}") from error
    stamp.write_text(wanted, encoding="utf-8")
    return python


@contextmanager
def running_hermes(folder: Path, model: ScriptedModel, **settings: Mapping[str, Any]) -> Iterator[RealHermes]:
    """Yield an endpoint whose home is in `folder`; it is stopped by its process id afterwards.

    settings: tables of its configuration beside those that keep it quiet, such as `compression={"in_place": False}`.
    """
    python = hermes_environment()
    home, user, work = (folder / name for name in ("home", "user", "work"))
    for each in (home, user, work):
        each.mkdir(parents=True, exist_ok=True)
    configuration = {
        **_QUIET,
        "model": {
            "default": NAME,
            "provider": "custom",
            "base_url": model.url,
            "api_key": "the-scripted-one-needs-none",
            "context_length": model.context_length,
        },
        "terminal": {"cwd": str(work)},
        **settings,
    }
    (home / "config.yaml").write_text(json.dumps(configuration), encoding="utf-8")  # YAML reads JSON
    key, port = secrets.token_hex(24), _free_port()
    key_file = folder / "key"
    key_file.touch(mode=0o600)
    key_file.write_text(key, encoding="utf-8")
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-c", _START],
            cwd=work,
            env=_environment(home=home, user=user, key=key, port=port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _until_healthy(process, url, folder / "gateway.log")
        yield RealHermes(url=url, key=key, key_file=key_file, model=model, home=home)
    finally:
        _end(process)


def _environment(*, home: Path, user: Path, key: str, port: int) -> dict[str, str]:
    nowhere = f"http://127.0.0.1:{_free_port()}"
    proxies = {"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "ALL_PROXY": nowhere, "NO_PROXY": "127.0.0.1,localhost"}
    return {
        "PATH": f"{_ENVIRONMENT / 'bin'}:{os.defpath}",
        "LANG": "C.UTF-8",
        "HOME": str(user),
        "HERMES_HOME": str(home),
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
        "API_SERVER_KEY": key,
        **proxies,
        **{name.lower(): value for name, value in proxies.items()},
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with opener.open(f"{url}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise NoRealHermes(f"hermes-agent {RELEASE} did not become healthy; it said:\n{said}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
