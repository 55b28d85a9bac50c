"""Every promised behaviour, by id. It answers "is it done?".

A test names the promises it proves: `@pytest.mark.requirement("runtime:fence:replay-sends-nothing")`. The suite fails
on a promise without a test and on a test that names an unknown promise (tests/unit/test_requirements.py).
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests import promises
from tests.promises.promise import Promise

__all__ = ["REQUIREMENTS"]


def _collect() -> dict[str, Promise]:
    found: dict[str, Promise] = {}
    for module in iter_modules(promises.__path__):
        for promise in getattr(import_module(f"tests.promises.{module.name}"), "PROMISES", ()):
            if promise.id in found:
                raise ValueError(f"promise {promise.id} is written twice")
            found[promise.id] = promise
    return found


REQUIREMENTS = _collect()
