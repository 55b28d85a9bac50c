"""What reaches the terminal: data on stdout as JSON, talk on stderr, both free of foreign control sequences."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

__all__ = ["drop_unwritten", "json_text", "open_streams", "print_json", "print_json_line", "safe_text", "say"]

# Marks that turn the writing direction, line separators, invisible joiners, lone surrogates, controls beyond JSON's.
_INVISIBLE = "\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
_IN_JSON = re.compile(f"[{_INVISIBLE}]")
_IN_TEXT = re.compile(f"[\x00-\x1f{_INVISIBLE}]")


def open_streams() -> None:
    """Give a stream that the caller closed (`>&-`) to nobody; also so that no connection gets its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace"))  # noqa: SIM115


def drop_unwritten(*, why: str | None) -> None:
    """Forget what could not be written, so that the interpreter does not complain about it once more at its end.

    why: said on stderr, which may be the stream that failed; None says nothing.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        if why is not None:
            say(f"the output could not be written: {why}", "  next: look up what was sent, if anything was, by its id")
    except OSError:
        os.dup2(nowhere, 2)


def safe_text(value: object) -> str:
    r"""Return `value` as one line that a terminal only shows: every unsafe character becomes `\x1b` or `\u202e`."""
    return _IN_TEXT.sub(_visible, str(value))


def json_text(value: Any) -> str:
    """Return JSON of two-space indent in which the characters that `safe_text` refuses are JSON escapes."""
    return _escaped(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_json(value: Any) -> None:
    """Print one document as UTF-8 bytes, so that neither locale nor platform changes it."""
    sys.stdout.buffer.write(f"{json_text(value)}\n".encode())
    sys.stdout.flush()


def print_json_line(value: Any) -> None:
    """Print one document as one line, as `print_json` otherwise; whole or not at all for who reads the pipe."""
    text = _escaped(json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.flush()


def say(*lines: str) -> None:
    """Write lines to stderr now. They are made safe here."""
    for line in lines:
        sys.stderr.write(f"{_ascii_if_needed(safe_text(line))}\n")
    sys.stderr.flush()


def _escaped(text: str) -> str:
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _ascii_if_needed(text: str) -> str:
    encoding = sys.stderr.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
