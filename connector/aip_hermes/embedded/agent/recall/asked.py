"""The arguments of a recall, whatever a model made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["DEFINITION", "NAME", "Asked"]

NAME: Final = "session_search"

Mode = Literal["scroll", "read", "browse", "discover"]

_LIMIT: Final = (3, 1, 10)
_WINDOW: Final = (5, 1, 20)
_ROLES: Final = ("user", "assistant")
_LARGEST: Final = 2**63 - 1
"""No store has a row of a greater number, nor can look for one."""
_LINK: Final = "@session:"

DEFINITION: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": (
            "Look into earlier conversations that are stored. With `query`: search them all; each word must be there, "
            '"a phrase", OR, NOT and begin* work. With `session_id`: read that conversation. With `session_id` and '
            "`around_message_id`: scroll to a message found before. With nothing: the latest conversations. What is in "
            "your context already is left out."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to search for."},
                "limit": {"type": "integer", "description": "How many conversations, 1 to 10.", "default": 3},
                "sort": {
                    "type": "string",
                    "enum": ["newest", "oldest"],
                    "description": "By time instead of by best fit.",
                },
                "detail": {
                    "type": "string",
                    "enum": ["adaptive", "full"],
                    "description": "`adaptive` shows the first result in full, of the others the message found; `full` "
                    "shows all in full.",
                    "default": "adaptive",
                },
                "session_id": {"type": "string", "description": "A conversation from an earlier result."},
                "around_message_id": {"type": "integer", "description": "A message from an earlier result."},
                "window": {"type": "integer", "description": "Messages on each side of it, 1 to 20.", "default": 5},
                "role_filter": {
                    "type": "string",
                    "description": "Whose messages are searched, with commas between.",
                    "default": "user,assistant",
                },
                "profile": {"type": "string", "description": "The profile of the conversation, from its link."},
            },
        },
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is asked for. session_id: also from a link, without its profile."""

    query: str
    limit: int
    sort: str | None
    full: bool
    session_id: str
    around_message_id: int | None
    window: int
    roles: tuple[str, ...]
    profile: str

    @staticmethod
    def of(arguments: Mapping[str, Any]) -> Asked:
        """Read arguments. A value of the wrong kind counts as not given; numbers are brought into their bounds."""
        session_id, profile = _text(arguments.get("session_id")), _text(arguments.get("profile"))
        if session_id.startswith(_LINK):
            linked, slash, rest = session_id.removeprefix(_LINK).partition("/")
            session_id, profile = (rest, profile or linked) if slash else (linked, profile)
        sort = _text(arguments.get("sort")).lower()
        roles = tuple(role.strip() for role in _text(arguments.get("role_filter")).split(",") if role.strip())
        return Asked(
            query=_text(arguments.get("query")),
            limit=_within(arguments.get("limit"), *_LIMIT),
            sort=sort if sort in ("newest", "oldest") else None,
            full=_text(arguments.get("detail")).lower() == "full",
            session_id=session_id,
            around_message_id=_number(arguments.get("around_message_id")),
            window=_within(arguments.get("window"), *_WINDOW),
            roles=roles or _ROLES,
            profile=profile,
        )

    @property
    def mode(self) -> Mode:
        """Which of the four it is."""
        if self.session_id:
            return "read" if self.around_message_id is None else "scroll"
        return "discover" if self.query else "browse"


def _text(value: object) -> str:
    if isinstance(value, str):
        return scrubbed(value.strip())
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return min(max(number, -_LARGEST), _LARGEST)


def _within(value: object, default: int, least: int, most: int) -> int:
    number = _number(value)
    return default if number is None else min(max(number, least), most)
