"""The public names of the package and of the client library."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import aip_hermes
from tests.support.client_command import aipctl_environment


@pytest.mark.requirement("client:names:lazy")
@pytest.mark.parametrize("package", ["aip_hermes", "aip_hermes.client", "aip_hermes.cli.aipctl", "aip_hermes.embedded"])
def test_every_public_name_can_be_imported(package: str) -> None:
    module = importlib.import_module(package)
    names = module.__all__
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not hasattr(module, name)] == []
    assert set(names) <= set(dir(module))


@pytest.mark.requirement("client:names:lazy")
@pytest.mark.parametrize("package", ["aip_hermes", "aip_hermes.client", "aip_hermes.embedded"])
def test_the_lazy_names_are_those_that_type_checkers_know_and_with_the_others_the_public_ones(package: str) -> None:
    """Without its import for type checkers a name would be Any to them, and nothing would say so."""
    module = importlib.import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert sorted(imported(checked.body)) == sorted(module._HOME_OF)
    assert {*module._HOME_OF, *imported(tree.body), "__version__"} >= set(module.__all__) >= module._HOME_OF.keys()


def imported(body: Sequence[ast.stmt]) -> list[str]:
    return [name.name for node in body if isinstance(node, ast.ImportFrom) for name in node.names]


@pytest.mark.requirement("client:names:lazy")
def test_every_public_name_stands_in_the_file_of_type_assertions() -> None:
    """That file is for mypy; running it would prove nothing."""
    tree = ast.parse((Path(__file__).parents[1] / "typing/api.py").read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert sorted(set(aip_hermes.__all__) - used) == []


@pytest.mark.requirement("client:names:lazy")
def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        aip_hermes.nothing_of_that_name  # noqa: B018


@pytest.mark.requirement("client:names:lazy", "aipctl:help:light")
@pytest.mark.parametrize("program", ["import aip_hermes", "import aip_hermes.cli.aipctl.command"])
def test_importing_loads_neither_httpx_nor_pydantic(program: str) -> None:
    check = f"{program}; import sys; print([m for m in ('httpx', 'pydantic', 'rich', 'yaml') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, env=aipctl_environment(), timeout=120, check=True
    )
    assert done.stdout.strip() == b"[]"
