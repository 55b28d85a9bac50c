"""What cancelling an action can stop at an endpoint, and what can be said where it can't.

Only runs can be stopped. A turn of a session runs on, whoever leaves. Source: connector contract §15; API page §8.3.
"""

from __future__ import annotations

from typing import Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.headers import base_headers
from aip_hermes.hermes.stream_grammar import GRAMMARS
from aip_hermes.hermes.wording import Subject

__all__ = ["stop"]

_STOP_S: Final = 10.0
_LEFT: Final = "Hermes can't stop what was sent; closing our connection does not end it there"


async def stop(
    attempts: Attempts, *, operation: Operation, endpoint: Endpoint, subject: Subject, target: str
) -> JsonObject:
    """Stop what the row's `stop` rule names, with one request, and return `{"stopped", "note"}`. Never raises.

    target: path of the request that is under way.
    """
    if operation.stop == "none":
        return {"stopped": False, "note": GRAMMARS[operation.stream].left if operation.stream != "none" else _LEFT}
    request = RequestSpec(
        method="POST",
        target=target.removesuffix("/events") + "/stop",
        headers=base_headers(endpoint, auth=True, body=False),
        body=None,
        timeout_s=_STOP_S,
        mutation=True,
    )
    try:
        await attempts.once(request, Asked(endpoint=endpoint, subject=subject, mutation=True), deadline_ms=None)
    except HermesFailed as failure:
        if failure.details["remote_status"] == 404:
            return {"stopped": False, "note": "Hermes knows no such run any more: it was over, or it was never there"}
        return {"stopped": False, "note": f"Hermes was asked to stop the run and did not confirm it: {failure.code}"}
    return {"stopped": True, "note": "Hermes was asked to stop the run and took the request; read the run's status"}
