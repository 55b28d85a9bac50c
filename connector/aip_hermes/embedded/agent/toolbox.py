"""Tools by name and by toolset: the built-in ones and the user's own, and which of them a conversation is offered."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import structlog

from aip_hermes.embedded.agent.events import Approver, Nobody
from aip_hermes.embedded.agent.finishing import being_cancelled
from aip_hermes.embedded.agent.models import ToolCall
from aip_hermes.embedded.session_db import SessionDB

__all__ = ["EMPTY", "Tool", "ToolContext", "ToolOutcome", "ToolRegistry", "Toolbox", "arguments_of", "no_store"]

log = structlog.get_logger(__name__)

F = TypeVar("F", bound=Callable[..., Awaitable[object]])

ALL: Final = "*"
_NOTHING: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutcome:
    """output: the text that becomes the result row. failed: denied, broken or unknown."""

    output: str
    failed: bool


async def no_store() -> SessionDB:
    """Where a conversation has no store."""
    raise RuntimeError("this conversation has no session store; give its agent one with session_db=")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolContext:
    """What a tool may know and ask. session_id: the row of the turn. session_db: its store, or None.

    approver: decides what a person has to decide. store: returns the store of the turn, and opens the default one where
    it has none; raises StoreFailure or RuntimeError where that can't be.
    """

    session_id: str
    session_db: SessionDB | None = None
    approver: Approver = field(default_factory=Nobody)
    store: Callable[[], Awaitable[SessionDB]] = no_store


class Tool(Protocol):
    """One tool. definition: what the model reads, an OpenAI function tool with this name."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> Mapping[str, Any]: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str | ToolOutcome:
        """Do it. A text is a success, and so is anything else, as JSON; an exception becomes a failed result, and the
        turn goes on.
        """


class Toolbox:
    """What one conversation is offered."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """What a request offers the model."""
        return tuple(tool.definition for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The offered tools, in order."""
        return tuple(self._tools)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """Run a call; whatever is wrong with it or with its tool is an outcome, so that the turn goes on."""
        tool = self._tools.get(call.name)
        if tool is None:
            return _failure(f"Unknown tool: {call.name}")
        arguments = arguments_of(call)
        if arguments is None:
            needed = json.dumps(tool.definition["function"].get("parameters", _NOTHING).get("properties", {}))
            return _failure(f"The arguments are no JSON object. The arguments are members of one: {needed}")
        try:
            outcome: object = await tool.run(arguments, context)
            return outcome if isinstance(outcome, ToolOutcome) else ToolOutcome(output=_text(outcome), failed=False)
        except asyncio.CancelledError as exc:
            if being_cancelled():
                raise
            return _broken(call, exc)  # out of work that the tool itself gave up
        except Exception as exc:  # a tool of somebody else's may fail in any way; the model is told
            return _broken(call, exc)


EMPTY: Final = Toolbox()


class ToolRegistry:
    """Tools in toolsets. A name is given once.

    tools = ToolRegistry()

    @tools.tool(toolset="clock", description="The time in a city.")
    async def time_in() -> str: ...
    """

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, Tool]] = {}

    @property
    def toolsets(self) -> dict[str, tuple[str, ...]]:
        """Toolset → names of its tools."""
        found: dict[str, tuple[str, ...]] = {}
        for name, (toolset, _tool) in self._tools.items():
            found[toolset] = (*found.get(toolset, ()), name)
        return found

    def add(self, tool: Tool, *, toolset: str) -> None:
        """Add a tool. Raises ValueError for a name that is taken, or for a definition of another name."""
        told = tool.definition.get("function", {}).get("name")
        if told != tool.name:
            raise ValueError(f"the definition of tool {tool.name} is named {told}")
        if tool.name in self._tools:
            raise ValueError(f"there is a tool {tool.name} already")
        self._tools[tool.name] = (toolset, tool)

    def tool(
        self, *, toolset: str, description: str, parameters: Mapping[str, Any] = _NOTHING, name: str | None = None
    ) -> Callable[[F], F]:
        """Make a tool of an async function, which gets its arguments by name.

        parameters: JSON Schema of an object. What it returns is the result: a text as it is, anything else as JSON.
        """

        def added(function: F) -> F:
            tool_name = name or str(getattr(function, "__name__", "tool"))
            self.add(_FunctionTool(tool_name, function, description, parameters), toolset=toolset)
            return function

        return added

    def joined(self, other: ToolRegistry) -> ToolRegistry:
        """Return a registry with the tools of both. Raises ValueError for a name in both."""
        both = ToolRegistry()
        for toolset, tool in (*self._tools.values(), *other._tools.values()):
            both.add(tool, toolset=toolset)
        return both

    def chosen(self, enabled: Iterable[str] | None, disabled: Iterable[str] | None) -> Toolbox:
        """Return the tools of the enabled toolsets that are not disabled. None: all; `*` disabled: none.

        Raises ValueError for an enabled toolset that there is none of, TypeError for a text in place of names.
        """
        if isinstance(enabled, str) or isinstance(disabled, str):
            raise TypeError("toolsets are a list of names")
        toolsets = self.toolsets
        wanted, unwanted = set(toolsets if enabled is None else enabled), set(disabled or ())
        if unknown := sorted(wanted - toolsets.keys()):
            there = ", ".join(sorted(toolsets)) or "none"
            raise ValueError(f"no such toolset: {', '.join(unknown)}; there are: {there}")
        if ALL in unwanted:
            return EMPTY
        return Toolbox(tool for toolset, tool in self._tools.values() if toolset in wanted - unwanted)


class _FunctionTool:
    def __init__(
        self, name: str, function: Callable[..., Awaitable[object]], description: str, parameters: Mapping[str, Any]
    ) -> None:
        self.name = name
        self._function = function
        self.definition: Mapping[str, Any] = {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": dict(parameters)},
        }

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        result: object = self._function(**arguments)
        # A plain function has done its work by now; to fail would only make the model call it again.
        return _text(await result if inspect.isawaitable(result) else result)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments, or None where they are no JSON object. NaN and the infinities are no JSON."""
    try:
        value = json.loads(call.arguments, parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _text(result: object) -> str:
    return result if isinstance(result, str) else json.dumps(result)


def _broken(call: ToolCall, exc: BaseException) -> ToolOutcome:
    log.warning("tool.failed", tool=call.name, cause=type(exc).__name__)
    return _failure(f"{type(exc).__name__}: {exc}")


def _failure(message: str) -> ToolOutcome:
    return ToolOutcome(output=json.dumps({"error": message, "success": False}), failed=True)
