"""A Hermes endpoint of our own: durable sessions, an agent, the sessions API.

The names are loaded when they are first used: who opens a store alone loads no web server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aip_hermes.embedded.agent import Model, ModelFailed, ModelReply, ModelRequest, OfflineModel, Pieces
    from aip_hermes.embedded.agent.ai_agent import AIAgent
    from aip_hermes.embedded.agent.openai_model import OpenAIModel
    from aip_hermes.embedded.agent.telling import TurnFailed
    from aip_hermes.embedded.agent.toolbox import ToolContext, ToolRegistry
    from aip_hermes.embedded.api import QUIRKS, build_app, chosen_quirks, planned_faults
    from aip_hermes.embedded.listen import UnsafeKey, check_key_strength
    from aip_hermes.embedded.opening import open_endpoint
    from aip_hermes.embedded.session_db import (
        CompressionSessionBusyError,
        CompressionSessionClosedError,
        SessionCompressionInProgressError,
        SessionDB,
        SessionExists,
        SessionExportTooLargeError,
        SessionResumeTooLargeError,
        SessionTurnLeaseLostError,
        TitleRefused,
        UnknownSession,
        classify_session_failure,
    )

__all__ = [
    "QUIRKS",
    "AIAgent",
    "CompressionSessionBusyError",
    "CompressionSessionClosedError",
    "Model",
    "ModelFailed",
    "ModelReply",
    "ModelRequest",
    "OfflineModel",
    "OpenAIModel",
    "Pieces",
    "SessionCompressionInProgressError",
    "SessionDB",
    "SessionExists",
    "SessionExportTooLargeError",
    "SessionResumeTooLargeError",
    "SessionTurnLeaseLostError",
    "TitleRefused",
    "ToolContext",
    "ToolRegistry",
    "TurnFailed",
    "UnknownSession",
    "UnsafeKey",
    "build_app",
    "check_key_strength",
    "chosen_quirks",
    "classify_session_failure",
    "open_endpoint",
    "planned_faults",
]

_HOMES = {
    "agent": ("Model", "ModelFailed", "ModelReply", "ModelRequest", "OfflineModel", "Pieces"),
    "agent.ai_agent": ("AIAgent",),
    "agent.openai_model": ("OpenAIModel",),
    "agent.telling": ("TurnFailed",),
    "agent.toolbox": ("ToolContext", "ToolRegistry"),
    "api": ("QUIRKS", "build_app", "chosen_quirks", "planned_faults"),
    "listen": ("UnsafeKey", "check_key_strength"),
    "opening": ("open_endpoint",),
    "session_db": (
        "SessionDB",
        "CompressionSessionBusyError",
        "CompressionSessionClosedError",
        "SessionCompressionInProgressError",
        "SessionExists",
        "SessionExportTooLargeError",
        "SessionResumeTooLargeError",
        "SessionTurnLeaseLostError",
        "TitleRefused",
        "UnknownSession",
        "classify_session_failure",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
