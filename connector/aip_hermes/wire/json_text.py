"""JSON text, read strictly and written plainly.

Refused on reading: a repeated member, NaN and the infinities, trailing commas, text that is no UTF-8, lone surrogates,
nesting deeper than 128, numbers beyond 309 digits or the range of a float, a byte order mark unless it is allowed.
Integers keep their value, whatever their size below that.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from aip_hermes.wire.canonical import utf8

__all__ = ["MAX_DEPTH", "JsonProblem", "read_json", "write_json"]

MAX_DEPTH = 128
"""Arrays and objects inside each other."""

_MAX_DIGITS = 309
_BOM = "\ufeff"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(rf"\d{{{_MAX_DIGITS + 1}}}")


class JsonProblem(ValueError):
    """The text is no acceptable JSON. line, column: 1-based, columns in characters. reason never contains the text."""

    def __init__(self, reason: str, *, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


def read_json(text: str | bytes, *, allow_bom: bool = False) -> Any:
    """Read one JSON value.

    Raises: JsonProblem.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    if text.startswith(_BOM) and allow_bom:
        text = text[1:]
    try:
        return _read_fast(text)
    except (ValueError, RecursionError):
        pass  # The slow reader answers outside of the handler: the exception holds the whole text.
    return _Reader(text).read()


def _read_fast(text: str) -> Any:
    if text.startswith(_BOM) or _LONG_NUMBER.search(text):
        raise ValueError("look closer")
    text.encode()
    value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
    if _SURROGATE_ESCAPE.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _bounded(value)
    return value


def write_json(value: object, *, indent: int | None = None) -> bytes:
    """Write a JSON value as UTF-8, members in the order they have, without white space unless `indent` is given.

    Raises: ValueError for NaN and the infinities.
    """
    separators = (",", ":") if indent is None else (",", ": ")
    return utf8(json.dumps(value, separators=separators, ensure_ascii=False, allow_nan=False, indent=indent))


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        before = raw[: exc.start].decode("utf-8")
        line, column = _place(before, len(before))
        raise JsonProblem("not UTF-8", line=line, column=column) from None


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("repeated member")
    return value


def _no_constant(_: str) -> NoReturn:
    raise ValueError("no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("out of range")
    return value


def _bounded(value: Any) -> None:
    level, depth = [value], 0
    while level:
        inner = [v for v in level if isinstance(v, dict | list)]
        depth += bool(inner)
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        level = [child for v in inner for child in (v.values() if isinstance(v, dict) else v)]


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class _Reader:
    """The slow reader, asked only about text that the fast one did not like: it knows where the trouble is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> Any:
        value = self._value(0)
        self._space()
        if self._at < len(self._text):
            self._refuse("more text after the value")
        return value

    def _refuse(self, reason: str, at: int | None = None) -> NoReturn:
        line, column = _place(self._text, self._at if at is None else at)
        raise JsonProblem(reason, line=line, column=column)

    def _space(self) -> str:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches the empty text
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        start = self._space()
        if start in ("{", "["):
            if depth == MAX_DEPTH:
                self._refuse(f"nested deeper than {MAX_DEPTH}")
            return self._members(depth) if start == "{" else self._items(depth)
        if start == '"':
            return self._string()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        return self._number(start)

    def _number(self, start: str) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._refuse({"": "the text ends early", _BOM: "a byte order mark"}.get(start, "a value is expected here"))
        if len(match[0]) > _MAX_DIGITS and max(len(run) for run in re.findall(r"\d+", match[0])) > _MAX_DIGITS:
            self._refuse("a number is too long")
        if match[1] is None and match[2] is None:
            value: int | float = int(match[0])
        else:
            value = float(match[0])
            if value in (float("inf"), float("-inf")):
                self._refuse("a number is out of range")
        self._at = match.end()
        return value

    def _items(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        if self._space() == "]":
            self._at += 1
            return items
        while True:
            items.append(self._value(depth + 1))
            if self._next("]"):
                return items
            if self._space() == "]":
                self._refuse("a comma stands before the end of an array")

    def _members(self, depth: int) -> dict[str, Any]:
        self._at += 1
        members: dict[str, Any] = {}
        if self._space() == "}":
            self._at += 1
            return members
        while True:
            if self._space() != '"':
                self._refuse("a member name in double quotes is expected here")
            at = self._at
            name = self._string()
            if name in members:
                self._refuse("a member name is repeated in its object", at)
            if self._space() != ":":
                self._refuse("a colon is expected here")
            self._at += 1
            members[name] = self._value(depth + 1)
            if self._next("}"):
                return members
            if self._space() == "}":
                self._refuse("a comma stands before the end of an object")

    def _next(self, end: str) -> bool:
        found = self._space()
        if found not in (",", end) or not found:
            self._refuse(f"a comma or {end} is expected here" if found else "the text ends early")
        self._at += 1
        return found == end

    def _string(self) -> str:
        opened = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            assert plain is not None  # noqa: S101  # matches the empty text
            parts.append(plain[0])
            self._at = plain.end()
            char = self._text[self._at : self._at + 1]
            if char == '"':
                self._at += 1
                return "".join(parts)
            if char == "\\":
                parts.append(self._escape())
            elif not char:
                self._refuse("a string is not closed", opened)
            elif char < " ":
                self._refuse("a control character stands in a string")
            else:
                self._refuse("a lone surrogate stands in a string")

    def _escape(self) -> str:
        char = self._text[self._at + 1 : self._at + 2]
        if char in _ESCAPES:
            self._at += 2
            return _ESCAPES[char]
        if char != "u":
            self._refuse("an unknown escape")
        unit = self._unit(self._at)
        if 0xDC00 <= unit < 0xE000:
            self._refuse("a lone surrogate stands in a string")
        if 0xD800 <= unit < 0xDC00:
            low = self._unit(self._at + 6) if self._text.startswith("\\u", self._at + 6) else 0
            if not 0xDC00 <= low < 0xE000:
                self._refuse("a lone surrogate stands in a string")
            self._at += 12
            return chr(0x10000 + ((unit - 0xD800) << 10 | low - 0xDC00))
        self._at += 6
        return chr(unit)

    def _unit(self, at: int) -> int:
        digits = _HEX.match(self._text, at + 2)
        if digits is None:
            self._refuse("an escape lacks four hexadecimal digits", at)
        return int(digits[0], 16)
