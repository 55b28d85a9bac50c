"""What the pages of the documentation let a reader type: their fenced blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "Block", "fenced", "guides"]

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Block:
    """page: relative to the repository. number: among all blocks of its page, from 0. language: as the fence says."""

    page: str
    number: int
    language: str
    text: str


def guides() -> list[str]:
    """Return every tutorial and how-to."""
    found = [path for name in ("tutorial", "how-to") for path in sorted((ROOT / "docs" / name).rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def fenced(page: str, language: str | None = None) -> list[Block]:
    """Return the blocks of a page in order; those of one language, or all."""
    found = _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    blocks = [Block(page=page, number=n, language=lang, text=text) for n, (lang, text) in enumerate(found)]
    return [block for block in blocks if language is None or block.language == language]
