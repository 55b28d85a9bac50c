"""From an objective to the body of the one request that starts its run. Pure.

Source: connector contract §18.2, 1 and 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.contract.handler import Call
from aip_hermes.hermes.operator.policy import OperatorPolicy
from aip_hermes.ids import EndpointId
from aip_hermes.wire import sha256_hex

__all__ = ["Unusable", "fingerprint", "session_id_of", "start_body"]

_GIVEN: Final = ("context", "candidate_capabilities", "constraints")
_RULES: Final = (
    "do what the objective asks, once",
    "keep every constraint",
    "wait for approvals and take a refusal as final",
    "report what was done, how it was checked and what is left",
)


class Unusable(ValueError):
    """An input that no run can be started with; the text names the rule, never a value."""


def session_id_of(action_id: str) -> str:
    """Return the session in which the run of an action speaks."""
    return f"aip-operator-{action_id}"


def fingerprint(call: Call, *, endpoint_id: EndpointId) -> str:
    """Return what an Action ID stands for: the same for the same request of the same caller, whenever it is sent."""
    action = {
        "action_id": call.action_id,
        "capability_id": call.capability_id,
        "input": call.input,
        "principal_id": call.actor.principal_id,
        "tenant_id": call.actor.tenant_id,
    }
    return sha256_hex({"endpoint_id": endpoint_id, "action": action, "delegation": None})


def start_body(call: Call, *, endpoint_id: EndpointId, policy: OperatorPolicy) -> bytes:
    """Return the JSON body of the start.

    Raises: Unusable.
    """
    text = _text(call, endpoint_id)
    if (size := len(_encoded(text))) > policy.max_input_bytes:
        raise Unusable(f"the input of the run would be {size} bytes, and {policy.max_input_bytes} are allowed")
    body = {"input": text, "instructions": policy.system_instructions, "session_id": session_id_of(call.action_id)}
    if policy.model is not None:
        body["model"] = policy.model
    return _encoded(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _text(call: Call, endpoint_id: EndpointId) -> str:
    given: Mapping[str, Any] = {name: call.input[name] for name in _GIVEN if name in call.input}
    told = {
        "kind": "aip_operator_objective",
        "objective": call.input["objective"],
        "context": given.get("context"),
        "candidate_capabilities": given.get("candidate_capabilities", []),
        "constraints": given.get("constraints", {}),
        "execution_contract": {"action_id": call.action_id, "endpoint_id": endpoint_id, "rules": list(_RULES)},
    }
    try:
        return json.dumps(told, ensure_ascii=False, allow_nan=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        raise Unusable("the input holds something that is no JSON") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unusable("a text contains a lone surrogate") from None
