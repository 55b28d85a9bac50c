"""The real endpoint of these tests: one that somebody runs, or one that they start themselves.

`make test-real` sets AIP_HERMES_REAL=1, which starts one. AIP_HERMES_REAL_URL and AIP_HERMES_REAL_KEY_FILE name one
that runs already. With neither they are skipped, so that `make test` needs no package index.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.gateway import NoRealHermes, RealHermes, hermes_environment, running_hermes
from tests.real.model import scripted_model
from tests.real.site import Site, real_site

# One try of a model that fails; two agents at once on the routes of /v1, so that a third is one too many.
_BRISK: Mapping[str, Mapping[str, Any]] = {
    "agent": {"api_max_retries": 1},
    "gateway": {"api_server": {"max_concurrent_runs": 2}},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """Where an endpoint answers, and the file that holds its key."""

    url: str
    key_file: Path


@pytest.fixture(scope="session")
def own_hermes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHermes]:
    """A real endpoint with a model that tests script."""
    if os.environ.get("AIP_HERMES_REAL") != "1":
        pytest.skip("no real Hermes was asked for: `make test-real`")
    try:
        hermes_environment()
    except NoRealHermes as error:
        pytest.skip(str(error))
    with scripted_model() as model, running_hermes(tmp_path_factory.mktemp("hermes"), model, **_BRISK) as hermes:
        yield hermes


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """The real endpoint, whoever runs it."""
    if url := os.environ.get("AIP_HERMES_REAL_URL"):
        return Endpoint(url=url, key_file=Path(os.environ["AIP_HERMES_REAL_KEY_FILE"]))
    own: RealHermes = request.getfixturevalue("own_hermes")
    return Endpoint(url=own.url, key_file=own.key_file)


@pytest.fixture
async def site(own_hermes: RealHermes, tmp_path: Path) -> AsyncIterator[Site]:
    """A runtime before the real endpoint."""
    async with real_site(own_hermes, tmp_path) as site:
        yield site
