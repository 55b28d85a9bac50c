"""Canonical JSON, the bytes that hashes and signatures are taken over.

Source: wire model §8.1.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256

__all__ = ["canonical_json", "sha256_hex"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical_json(value: object) -> bytes:
    """Return the one spelling of a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return utf8(text)


def sha256_hex(value: object) -> str:
    """Return the lower-case hex SHA-256 of the canonical JSON of `value`."""
    return sha256(canonical_json(value)).hexdigest()


def utf8(text: str) -> bytes:
    """Encode JSON text. A lone surrogate has no UTF-8 form and becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()
