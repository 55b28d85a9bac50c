"""The client checklist against a live deployment: fourteen points, played with data of its own, and the evidence."""

from __future__ import annotations

from aip_hermes.client.checklist.checking import problems_of
from aip_hermes.client.checklist.document import Cleaned, Deployment, Document, PointEvidence, Program, sealed
from aip_hermes.client.checklist.points import POINTS
from aip_hermes.client.checklist.rendering import markdown
from aip_hermes.client.checklist.running import Told, run_checklist

__all__ = [
    "POINTS",
    "Cleaned",
    "Deployment",
    "Document",
    "PointEvidence",
    "Program",
    "Told",
    "markdown",
    "problems_of",
    "run_checklist",
    "sealed",
]
