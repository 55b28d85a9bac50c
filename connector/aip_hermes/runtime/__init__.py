"""The embedded AIP runtime: action lifecycle, idempotency fence, approvals, events, recovery, on one durable store."""

from aip_hermes.runtime.authority import Authorities, AuthorityEntry, AuthorityFileError
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.limits import FAULT_POINTS, RuntimeLimits
from aip_hermes.runtime.service import Runtime

__all__ = [
    "FAULT_POINTS",
    "Authorities",
    "AuthorityEntry",
    "AuthorityFileError",
    "Caller",
    "MessageContext",
    "Runtime",
    "RuntimeLimits",
]
