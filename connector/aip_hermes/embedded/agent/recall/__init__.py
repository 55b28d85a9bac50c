"""The tool with which a model looks into earlier conversations: search, read, scroll, browse. No model is asked."""

from __future__ import annotations

from aip_hermes.embedded.agent.recall.tool import TOOLSET, SessionSearchTool

__all__ = ["TOOLSET", "SessionSearchTool"]
