"""How strong the key of an endpoint must be. It listens on this machine only."""

from __future__ import annotations

from typing import Final

from aip_hermes.secret import Secret

__all__ = ["MIN_KEY_CHARS", "UnsafeKey", "check_key_strength"]

MIN_KEY_CHARS: Final = 16
_MIN_DISTINCT: Final = 5
_PLACEHOLDERS: Final = (
    "changeme",
    "change-me",
    "change_me",
    "replaceme",
    "placeholder",
    "your-api-key",
    "your_api_key",
)


class UnsafeKey(ValueError):
    """A key that can be guessed; the text names the rule, never the key."""


def check_key_strength(key: Secret) -> None:
    """Refuse keys under 16 characters, of few different characters, and known placeholders. Raises UnsafeKey."""
    text = key.reveal()
    if len(text) < MIN_KEY_CHARS:
        raise UnsafeKey(f"an endpoint key has at least {MIN_KEY_CHARS} characters")
    if len(set(text)) < _MIN_DISTINCT or any(text.lower().startswith(word) for word in _PLACEHOLDERS):
        raise UnsafeKey("this endpoint key is a placeholder; make a random one")
