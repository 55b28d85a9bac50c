"""What lies in the folder of an endpoint. Loads nothing, so that who only looks into the folder loads no web server."""

from __future__ import annotations

from typing import Final

__all__ = ["LOCK_NAME", "STORE_NAME"]

STORE_NAME: Final = "hermes.db"
LOCK_NAME: Final = "hermes.lock"
