"""Ages as people write them."""

from __future__ import annotations

import re
from typing import Final

import click

__all__ = ["age_ms"]

_UNITS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}
_AGE: Final = re.compile(r"([0-9]{1,6})([dhms])")


def age_ms(text: str) -> int:
    """Return an age such as `30d`, `12h`, `90m` or `10s` in milliseconds. Raises click.BadParameter."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter("an age is a number and d, h, m or s, for example 30d", param_hint="--older-than")
    return int(match[1]) * _UNITS[match[2]]
