"""What answers in a session: models, and the turns that run on them."""

from __future__ import annotations

from aip_hermes.embedded.agent.models import (
    Model,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Pieces,
    ToolCall,
    whole_reply,
)
from aip_hermes.embedded.agent.offline import OfflineModel
from aip_hermes.embedded.agent.turns import (
    HistoryUnreadable,
    Order,
    ReplyNotStored,
    TooManyTurns,
    TurnInProgress,
    TurnResult,
    Turns,
)

__all__ = [
    "HistoryUnreadable",
    "Model",
    "ModelFailed",
    "ModelReply",
    "ModelRequest",
    "OfflineModel",
    "Order",
    "Pieces",
    "ReplyNotStored",
    "TooManyTurns",
    "ToolCall",
    "TurnInProgress",
    "TurnResult",
    "Turns",
    "whole_reply",
]
