"""The HTTP API of the embedded Hermes."""

from __future__ import annotations

from aip_hermes.embedded.api.app import build_app
from aip_hermes.embedded.api.endpoint import QUIRKS, chosen_quirks
from aip_hermes.embedded.api.faulty import planned_faults

__all__ = ["QUIRKS", "build_app", "chosen_quirks", "planned_faults"]
