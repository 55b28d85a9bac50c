"""What starting costs: nothing is loaded or built that the program may never use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

_BUILT = """
import json, sys
import aip_hermes.client
from aip_hermes import wire

def models(kind=wire.Wire):
    return [kind, *(found for inner in kind.__subclasses__() for found in models(inner))]

before = sorted(m.__name__ for m in models() if m.__pydantic_complete__)
libraries = [name for name in ("jsonschema", "referencing") if name in sys.modules]
wire.build_models()
after = sorted(m.__name__ for m in models() if not m.__pydantic_complete__)
print(json.dumps([before, libraries, after, len(models())]))
"""


@pytest.mark.requirement("wire:start:light")
def test_a_client_loads_no_schema_library_and_builds_models_when_used() -> None:
    done = subprocess.run([sys.executable, "-c", _BUILT], capture_output=True, timeout=120, check=True)
    built: list[Any] = json.loads(done.stdout)
    before, libraries, missing, count = built
    assert before == ["SeparationOfDuties"]  # the default of another model, two flags
    assert libraries == []
    assert missing == []
    assert count > 80
