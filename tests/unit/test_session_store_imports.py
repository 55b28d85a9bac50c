"""What a program loads that opens a session store and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOADED = "import sys; from aip_hermes.embedded import SessionDB; SessionDB('x.db'); print(*sorted(sys.modules))"


@pytest.mark.requirement("sessions:store:light")
def test_who_opens_a_session_store_alone_loads_no_web_server() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "aiosqlite" in loaded
    assert not loaded & {"starlette", "uvicorn", "httpx", "pydantic", "click", "psycopg", "prometheus_client"}
