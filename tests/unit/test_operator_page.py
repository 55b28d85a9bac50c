"""The operator's page for users names every setting with its default and bounds, and every reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aip_hermes.hermes.operator as operator_package
from aip_hermes.hermes.operator import OperatorPolicy
from aip_hermes.hermes.operator.policy import BOUNDS

PAGE = (Path(__file__).parents[2] / "docs/reference/operator.md").read_text(encoding="utf-8")
ROWS = {name: (default, rule) for name, default, rule in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE, re.M)}


@pytest.mark.requirement("docs:operator:page")
def test_the_page_names_every_setting_with_its_default_and_bounds() -> None:
    assert set(OperatorPolicy.members()) <= set(ROWS)
    policy = OperatorPolicy()
    for name, (least, most) in BOUNDS.items():
        assert ROWS[name][0] == str(getattr(policy, name))
        assert ROWS[name][1].startswith(f"{least}–{most}")


@pytest.mark.requirement("docs:operator:page")
def test_the_page_names_every_reason() -> None:
    folder = Path(operator_package.__file__).parent
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    reasons = set(re.findall(r'(?:Lost\(\s*|reason=)"(\w+)"', code)) | set(re.findall(r'binding, "(\w+)"', code))
    reasons |= {"run_forgotten", "status_unreadable"}
    told = set(re.findall(r"`(\w+)`", PAGE.partition("## Reasons")[2]))

    assert reasons | {"operator_policy", "operator_outcome_unknown"} == told
