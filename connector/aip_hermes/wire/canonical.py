"""Canonical JSON, the bytes that hashes and signatures are taken over.

Members in ascending order of their names (code points, which is also the order of their UTF-8 bytes), no white space,
everything beyond ASCII as it is. Floats are spelled as other implementations of the protocol spell them: `1e16`, not
`1e+16`, and `0.00001`, not `1e-05`.

Source: wire model §8.1; numbers: connector host §2.2.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256

__all__ = ["canonical_json", "sha256_hex"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_EXPONENT = re.compile(r"[0-9]e[-+]")


def canonical_json(value: object) -> bytes:
    """Return the one spelling of a JSON value.

    Raises: ValueError for NaN and the infinities, TypeError for what is no JSON.
    """
    text = _ENCODER.encode(value)
    return utf8(_spelled(value) if _EXPONENT.search(text) else text)


def sha256_hex(value: object) -> str:
    """Return the lower-case hex SHA-256 of the canonical JSON of `value`."""
    return sha256(canonical_json(value)).hexdigest()


def utf8(text: str) -> bytes:
    """Encode JSON text. A lone surrogate has no UTF-8 form and becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _spelled(value: object) -> str:
    """The slow spelling, for values that may hold a float with an exponent."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_spelled(name)}:{_spelled(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_spelled, value)) + "]"
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    text = float.__repr__(value)
    digits, _, exponent = text.partition("e")
    if not exponent:
        return text
    if exponent == "-05":
        sign = "-" if digits.startswith("-") else ""
        return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"
    return f"{digits}e{int(exponent)}"
