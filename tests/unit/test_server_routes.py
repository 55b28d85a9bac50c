"""The page of routes is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.server.routes import routes
from tests.support.server_site import make_site

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http-routes.md"


@pytest.mark.requirement("records:routes:documented")
def test_the_page_names_every_route(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    served = {f"{method} {path}" for method, path, _ in routes(make_site(tmp_path).gateway)}
    assert sorted(route for route in served if f"`{route}`" not in page) == []
