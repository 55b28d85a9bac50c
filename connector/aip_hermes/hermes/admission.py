"""What no operation may be asked for, whatever its input: a foreign tenant's endpoint, or one without a key.

Source: connector contract §16; design D18.
"""

from __future__ import annotations

from aip_hermes.contract.handler import Call
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.failures import MissingCredential, TenantMismatch

__all__ = ["refuse_unusable"]


def refuse_unusable(endpoint: Endpoint, operation: Operation, call: Call) -> None:
    """Raise TenantMismatch or MissingCredential; nothing has been sent then."""
    if endpoint.tenant_id is not None and call.actor.tenant_id != endpoint.tenant_id:
        raise TenantMismatch(
            f"Hermes endpoint {endpoint.id} is bound to another tenant; nothing was sent."
            " Use a capability that discovery lists for your tenant.",
            endpoint_id=endpoint.id,
        )
    if operation.auth and endpoint.key is None:
        raise MissingCredential(
            f"Hermes endpoint {endpoint.id} has no key configured; nothing was sent."
            " Configure a key file for this endpoint, then send the same action again.",
            endpoint_id=endpoint.id,
        )
