"""The real endpoint of these tests: one that somebody runs, or one that they start themselves.

`make test-real` sets AIP_HERMES_REAL=1, which starts one. AIP_HERMES_REAL_URL and AIP_HERMES_REAL_KEY_FILE name one
that runs already. With neither they are skipped, so that `make test` needs no package index.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.gateway import NoRealHermes, RealHermes, hermes_environment, running_hermes
from tests.real.model import scripted_model


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
    with scripted_model() as model, running_hermes(tmp_path_factory.mktemp("hermes"), model) as hermes:
        yield hermes


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """The real endpoint, whoever runs it."""
    if url := os.environ.get("AIP_HERMES_REAL_URL"):
        return Endpoint(url=url, key_file=Path(os.environ["AIP_HERMES_REAL_KEY_FILE"]))
    own: RealHermes = request.getfixturevalue("own_hermes")
    return Endpoint(url=own.url, key_file=own.key_file)
