"""Fixtures that many contract tests share."""

from __future__ import annotations

from tests.support.session_stores import session_clock, session_db, session_store

__all__ = ["session_clock", "session_db", "session_store"]
