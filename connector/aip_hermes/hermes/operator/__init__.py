"""The operator: one run of a Hermes agent for one objective, started at most once and followed to its end.

A durable binding per Action ID stands before the start and holds what is known of the run from then on.
Source: connector contract §8.7, §18; design §3 (State), D4.
"""

from __future__ import annotations

from aip_hermes.hermes.operator.handler import OperatorHandler
from aip_hermes.hermes.operator.policy import OperatorPolicy, OperatorPolicyInvalid

__all__ = ["OperatorHandler", "OperatorPolicy", "OperatorPolicyInvalid"]
