"""A Hermes endpoint of our own: durable sessions, an agent, the sessions API."""

from __future__ import annotations

from aip_hermes.embedded.agent import Model, ModelFailed, ModelReply, ModelRequest, OfflineModel, Pieces
from aip_hermes.embedded.api import QUIRKS, build_app, chosen_quirks, planned_faults
from aip_hermes.embedded.listen import UnsafeKey, check_key_strength
from aip_hermes.embedded.opening import open_endpoint
from aip_hermes.embedded.session_db import SessionDB

__all__ = [
    "QUIRKS",
    "Model",
    "ModelFailed",
    "ModelReply",
    "ModelRequest",
    "OfflineModel",
    "Pieces",
    "SessionDB",
    "UnsafeKey",
    "build_app",
    "check_key_strength",
    "chosen_quirks",
    "open_endpoint",
    "planned_faults",
]
