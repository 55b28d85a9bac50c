"""Path and query parameters of the read routes: unknown ones are ignored, malformed ones refused by name.

Source: AIP HTTP surface, "Read routes", common behaviour and paging.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from aip_hermes import wire
from aip_hermes.ids import Identity, IdentityError
from aip_hermes.server.failures import QueryInvalid

__all__ = ["Query", "path_identity"]

MAX_QUERY_BYTES: Final = 16_384
_U32: Final = 2**32 - 1

AnyIdentity = TypeVar("AnyIdentity", bound=Identity)


class Query:
    """The parameters of one request. Every reader takes a name and answers None where it is absent."""

    def __init__(self, raw: bytes) -> None:
        """Decode `raw`. Raises QueryInvalid for bytes that are no UTF-8 form data."""
        if len(raw) > MAX_QUERY_BYTES:
            raise QueryInvalid(f"the query string exceeds {MAX_QUERY_BYTES} bytes")
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise QueryInvalid("the query string is not percent-encoded UTF-8 with at most 100 members") from None
        self._given: dict[str, list[str]] = {}
        for name, value in pairs:
            self._given.setdefault(name, []).append(value)

    def text(self, name: str, *, max_bytes: int = 2048) -> str | None:
        """Return the value of `name`, 1 to `max_bytes` bytes long."""
        values = self._given.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise QueryInvalid(f"query parameter `{name}` is given {len(values)} times")
        value = values[0]
        if not value.strip() or len(value.encode("utf-8")) > max_bytes or "\0" in value:
            raise QueryInvalid(f"query parameter `{name}` must be 1 to {max_bytes} bytes and not blank")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, spelled exactly `true` or `false`; absent is False."""
        return self.optional_flag(name) or False

    def optional_flag(self, name: str) -> bool | None:
        value = self.text(name)
        if value not in (None, "true", "false"):
            raise QueryInvalid(f"query parameter `{name}` must be `true` or `false`")
        return None if value is None else value == "true"

    def limit(self, name: str = "limit", *, at_most: int) -> int | None:
        """Return a page size, clamped to 1…`at_most`."""
        value = self._number(name, most=_U32)
        return None if value is None else min(max(value, 1), at_most)

    def wait_ms(self) -> int | None:
        """Return how long an answer may wait for something to say, 0…30000 milliseconds."""
        return self._number("wait_ms", most=30_000)

    def time_ms(self, name: str) -> int | None:
        """Return an RFC 3339 time in Unix milliseconds."""
        value = self.text(name)
        try:
            return None if value is None else wire.parse_rfc3339(value)
        except ValueError:
            raise QueryInvalid(
                f"query parameter `{name}` must be a time such as 2030-01-01T00:00:00Z (a `+` is written %2B)"
            ) from None

    def choice(self, name: str, allowed: Collection[str]) -> str | None:
        """Return one of `allowed`."""
        value = self.text(name)
        if value is not None and value not in allowed:
            raise QueryInvalid(f"query parameter `{name}` must be one of {', '.join(sorted(allowed))}")
        return value

    def choices(self, name: str, allowed: Collection[str] | None = None) -> list[str]:
        """Return a comma-separated list, blanks around its entries removed; `allowed` closes it."""
        value = self.text(name)
        if value is None:
            return []
        entries = [entry.strip() for entry in value.split(",")]
        if not all(entries) or (allowed is not None and not set(entries) <= set(allowed)):
            rule = "a comma-separated list" if allowed is None else f"a list of {', '.join(sorted(allowed))}"
            raise QueryInvalid(f"query parameter `{name}` must be {rule}")
        return entries

    def identity(self, name: str, kind: type[AnyIdentity]) -> AnyIdentity | None:
        """Return an identity of the given kind."""
        value = self.text(name, max_bytes=4096)
        return None if value is None else _identity(f"query parameter `{name}`", value, kind)

    def _number(self, name: str, *, most: int) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) <= 10 and int(value) <= most):
            raise QueryInvalid(f"query parameter `{name}` must be an integer from 0 to {most}")
        return int(value)


def path_identity(raw: str, kind: type[AnyIdentity], *, name: str) -> AnyIdentity:
    """Decode one percent-encoded path segment to an identity. Raises QueryInvalid."""
    try:
        value = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise QueryInvalid(f"path parameter `{name}` is not percent-encoded UTF-8") from None
    return _identity(f"path parameter `{name}`", value, kind)


def _identity(place: str, value: str, kind: type[AnyIdentity]) -> AnyIdentity:
    try:
        return kind(value)
    except IdentityError as exc:
        raise QueryInvalid(f"{place}: {exc}") from None
