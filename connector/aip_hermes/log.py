"""Log events on stderr: a constant name and fields, never a payload, a credential or transcript text.

`configure` is called once by whoever owns the process. A script that uses the package as a library need not: the stores
and agents that it makes call `configure_unless_done`, as structlog's own default writes to stdout, which belongs to
data, and shows the values of variables where something failed. On a terminal events are readable lines, elsewhere one
JSON object per line.

Guards, in this order, for what a caller overlooked: fields are redacted by class, exceptions lose their message (the
message of a validation error quotes its input) and keep type and place. On a terminal what is not printable is spelled
out: an identity is chosen by a caller, and must neither move the cursor nor write a line of its own.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, TextIO, cast

import structlog

from aip_hermes.redact import field_class, redact_text

__all__ = ["PAYLOAD_FIELDS", "configure", "configure_unless_done"]

REDACTED: Final = "[redacted]"

PAYLOAD_FIELDS: Final = frozenset(("body", "input", "key", "output", "query", "title"))
"""Fields that are never logged, besides the redaction classes: what callers and endpoints send and answer."""

_FIRST: Final = ("timestamp", "level", "event")
_OWN: Final = frozenset(("timestamp", "level"))
"""Written by the processors above, over whatever a caller gave under these names."""
_MAX_TEXT: Final = 2000
_SHORT: Final = 80
_MAX_FRAMES: Final = 24

_QUIET: Final = ("aiosqlite", "asyncio", "httpcore", "httpx", "uvicorn", "uvicorn.access", "uvicorn.error")
"""Libraries that would write addresses or noise at lower levels."""


def configure(*, stream: TextIO | None = None, console: bool | None = None, level: str = "info") -> None:
    """Send structlog events, and warnings of libraries, to `stream` (stderr).

    console: readable lines; None asks whether the stream is a terminal. level: `debug`, `info`, `warning`, `error`.
    """
    _configure_events(sys.stderr if stream is None else stream, console=console, level=level)
    root = logging.getLogger()
    root.handlers[:] = [_LibraryHandler()]
    root.setLevel(logging.WARNING)
    for name in _QUIET:
        library = logging.getLogger(name)
        library.handlers[:] = []
        library.propagate = True
        library.setLevel(logging.WARNING)


def configure_unless_done() -> None:
    """Send warnings and errors of this package to stderr where the program has not configured structlog; it may do so
    later. Other libraries are the program's own affair.
    """
    if not structlog.is_configured():
        _configure_events(None, console=None, level="warning")


def _configure_events(target: TextIO | None, *, console: bool | None, level: str) -> None:
    terminal = (sys.stderr if target is None else target).isatty()
    readable = terminal if console is None else console
    threshold = logging.getLevelNamesMapping()[level.upper()]
    renderer: Any = structlog.dev.ConsoleRenderer(colors=terminal) if readable else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            place_of_exception,
            redact_fields,
            *((spell_out,) if readable else ()),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        # Structlog asks for these two alone.
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Unfailing(target))),
        cache_logger_on_first_use=False,
    )


def place_of_exception(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace `exc_info` by type names and code places; messages stay out, they may quote what was sent."""
    info = event.pop("exc_info", None)
    exception = _exception_of(info)
    if exception is None:
        return event
    event["exception"] = [type(one).__qualname__ for one in _chain(exception)]
    event["at"] = _places(exception.__traceback__)
    return event


def redact_fields(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Apply the field classes to every field, at any depth; time, level and name of the event come first."""
    ordered = [*(name for name in _FIRST if name in event), *(name for name in event if name not in _FIRST)]
    return {name: event[name] if name in _OWN else _redacted(name, event[name]) for name in ordered}


def spell_out(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    r"""Write unprintable characters as `\x1b` or `\u202e`; JSON lines and nested values are escaped as it is."""
    return {name: _printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _redacted(name: str, value: Any) -> Any:
    if _hidden(name):
        return REDACTED
    if isinstance(value, Mapping):
        return {str(key): _redacted(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(name, inner) for inner in value]
    if isinstance(value, str):
        return _searched(str(value)) if len(value) <= _SHORT else redact_text(str(value), max_chars=_MAX_TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    return f"<{type(value).__name__}>"


@lru_cache(maxsize=512)
def _searched(text: str) -> str:
    """Return a short text without what looks like a credential: routes, methods and principals come with each event."""
    return redact_text(text, max_chars=_MAX_TEXT)


@lru_cache(maxsize=512)
def _hidden(name: str) -> bool:
    return name.lower() in PAYLOAD_FIELDS or field_class(name) is not None


def _exception_of(info: Any) -> BaseException | None:
    if info is True:
        return sys.exc_info()[1]
    if isinstance(info, BaseException):
        return info
    if isinstance(info, tuple):
        return info[1] if isinstance(info[1], BaseException) else None
    return None


def _chain(exception: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = exception
    while current is not None and current not in found and len(found) < 8:
        found.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_MAX_FRAMES:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]


class _Unfailing:
    """Where events go. A full disk or a closed pipe costs events, never the work that they tell of."""

    def __init__(self, target: TextIO | None) -> None:
        self._chosen = target

    @property
    def _target(self) -> TextIO:
        # A notebook, or a test, puts another stderr in its place.
        return sys.stderr if self._chosen is None else self._chosen

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # the second for a stream that was closed
            self._target.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._target.flush()


class _LibraryHandler(logging.Handler):
    """Turns a library's warning into one event of ours; its text is bounded and redacted like every other field."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = record.getMessage()
        except Exception:  # a library's broken format string must not stop the program
            said = "unreadable"
        logger = structlog.get_logger()
        logger.log(record.levelno, "library.warning", library=record.name, said=said, exc_info=record.exc_info)
