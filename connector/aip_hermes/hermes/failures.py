"""The connector's errors.

    ProviderFailed
    └── HermesFailed             everything below, component `hermes-agent`
        ├── Authentication       the endpoint refused our key                                     key free again
        ├── MissingCredential    the endpoint has no key configured                               key free again
        ├── TenantMismatch       the endpoint belongs to another tenant
        ├── InputRefused         the input can't become a request; nothing was sent
        ├── RemoteRejected       a 3xx or 4xx
        ├── RemoteTemporary      a 429 or 5xx
        ├── TransportFailed      no connection, or it broke
        ├── InvalidResponse      a 2xx that is no JSON object, or an answer that is too large
        ├── SessionBusy          another turn, fork or delete of the session runs                 key free again
        ├── SessionSuperseded    the session ended by compression; its continuation is the place  (D14)
        ├── SessionClosed        the session is closed and the endpoint's setting refuses turns    (D14)
        ├── TargetChanged        the row is not the one that was approved                          (D25)
        ├── OutcomeUnknown       stopped between intent and settlement                             (D4)
        ├── OperatorPolicyRefused  the operator's policy or the state of its run forbids it
        ├── OperatorStateFailed  the durable binding of a run could not be read or written
        ├── OperatorStartRejected  the endpoint refused to start the run
        ├── OperatorRunFailed    the run ended by saying that it failed
        ├── OperatorOutcomeUnknown  a run may have started, gone on or heard an approval; never sent again
        ├── DeadlineExceeded     the action's time was over
        └── Cancelled            the action was cancelled

`uncertain` belongs to the single failure, not to the class. Source: connector contract §13.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.errors import ProviderFailed

__all__ = [
    "Authentication",
    "Cancelled",
    "DeadlineExceeded",
    "HermesFailed",
    "InputRefused",
    "InvalidResponse",
    "MissingCredential",
    "NotAStream",
    "OperatorOutcomeUnknown",
    "OperatorPolicyRefused",
    "OperatorRunFailed",
    "OperatorStartRejected",
    "OperatorStateFailed",
    "OutcomeUnknown",
    "RemoteRejected",
    "RemoteTemporary",
    "SessionBusy",
    "SessionClosed",
    "SessionSuperseded",
    "StreamFailed",
    "StreamIncomplete",
    "StreamPublication",
    "StreamTruncated",
    "TargetChanged",
    "TenantMismatch",
    "TransportFailed",
]


class HermesFailed(ProviderFailed, component="hermes-agent"):
    """A failure of this connector.

    details: always the members of the reference (`operation`, `provider_request_id`, `provider_operation`,
    `remote_status`, `uncertain_outcome`, `details`), then `provider` when an answer arrived: `{status, code, message,
    retry_after_ms}` (design D10), `endpoint_id` and `session_id` where known, and what the single failure adds.
    """

    def __init__(
        self,
        message: str,
        *,
        endpoint_id: str | None = None,
        session_id: str | None = None,
        provider: Mapping[str, Any] | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        uncertain: bool = False,
        operation: str = "invocation",
    ) -> None:
        shape: dict[str, Any] = {
            "operation": operation,
            "provider_request_id": None,
            "provider_operation": None,
            "remote_status": None if provider is None else provider.get("status"),
            "uncertain_outcome": uncertain,
            "details": None,
        }
        if provider is not None:
            shape["provider"] = dict(provider)
        if endpoint_id is not None:
            shape["endpoint_id"] = str(endpoint_id)
        if session_id is not None:
            shape["session_id"] = str(session_id)
        super().__init__(
            message,
            details=shape | dict(details or {}) | {"uncertain_outcome": uncertain},
            retryable=retryable,
            retry_after_ms=retry_after_ms,
            uncertain=uncertain,
        )


class Authentication(HermesFailed, code="connector.hermes_agent.authentication", category="auth", outside_request=True):
    """The endpoint refused the configured key: 401 or 403."""


class MissingCredential(
    HermesFailed, code="connector.hermes_agent.missing_credential", category="auth", outside_request=True
):
    """No key is configured for the endpoint; nothing was sent."""


class TenantMismatch(HermesFailed, code="connector.hermes_agent.tenant_mismatch", category="auth"):
    """The endpoint is bound to another tenant; nothing was sent."""


class InputRefused(HermesFailed, code="connector.hermes_agent.configuration_or_input", category="permanent"):
    """The input can't become a request; nothing was sent."""


class RemoteRejected(HermesFailed, code="connector.hermes_agent.remote_rejected", category="permanent"):
    """The endpoint answered with a 3xx or with a 4xx that is neither 401, 403, 408 nor 429."""


class RemoteTemporary(
    HermesFailed, code="connector.hermes_agent.remote_temporary", category="temporary", outside_request=True
):
    """The endpoint answered 408, 429 or 5xx."""


class TransportFailed(
    HermesFailed, code="connector.hermes_agent.transport", category="transport", outside_request=True
):
    """No connection, no answer in time, or the connection broke."""


class InvalidResponse(HermesFailed, code="connector.hermes_agent.invalid_response", category="connector"):
    """A success that is no JSON object, or an answer over the size limit."""


class SessionBusy(
    HermesFailed,
    code="connector.hermes_agent.session_busy",
    category="temporary",
    retryable=True,
    outside_request=True,
):
    """Another turn, fork or delete of the same session runs; nothing was sent."""


class SessionSuperseded(HermesFailed, code="connector.hermes_agent.session_superseded", category="permanent"):
    """The session ended by compression. details: `current_session_id`, null where it is not proven."""


class SessionClosed(HermesFailed, code="connector.hermes_agent.session_closed", category="permanent"):
    """The session is closed and the endpoint is set to refuse turns on closed sessions."""


class TargetChanged(HermesFailed, code="connector.hermes_agent.target_changed", category="permanent"):
    """The row changed since approval was asked; a new approval is needed."""


class NotAStream(HermesFailed, code="connector.hermes_agent.not_a_stream", category="connector"):
    """A success that is no stream of events, where one was asked for."""


class StreamFailed(HermesFailed, code="connector.hermes_agent.stream_failed", category="connector"):
    """The stream ended with an event that says that the work failed. details: `event`, its name."""


class StreamIncomplete(HermesFailed, code="connector.hermes_agent.stream_incomplete", category="connector"):
    """The stream ended without an event that ends it: neither success nor failure."""


class StreamTruncated(HermesFailed, code="connector.hermes_agent.stream_truncated", category="connector"):
    """The stream had more events than the caller allows. details: `max_events`."""


class StreamPublication(HermesFailed, code="connector.hermes_agent.stream_publication", category="connector"):
    """A chunk could not be stored, so the stream was left."""


class OutcomeUnknown(HermesFailed, code="connector.hermes_agent.outcome_unknown", category="connector"):
    """The attempt stopped between intent and settlement."""


class OperatorPolicyRefused(HermesFailed, code="connector.hermes_agent.operator_policy", category="permanent"):
    """The operator's policy, an Action ID with another request, or a run that does not wait; nothing was sent."""


class OperatorStateFailed(HermesFailed, code="connector.hermes_agent.operator_state", category="temporary"):
    """The durable binding of a run could not be read or written; nothing was sent."""


class OperatorStartRejected(HermesFailed, code="connector.hermes_agent.operator_start_rejected", category="permanent"):
    """The endpoint refused to start the run: a 3xx or 4xx that is none of those that have their own class."""


class OperatorRunFailed(HermesFailed, code="connector.hermes_agent.operator_run_failed", category="connector"):
    """The run is over and says that it failed; what its tools did stays done."""


class OperatorOutcomeUnknown(
    HermesFailed, code="connector.hermes_agent.operator_outcome_unknown", category="temporary"
):
    """A start, an approval or the rest of a run may have happened. details: `reason`. Always uncertain."""


class DeadlineExceeded(HermesFailed, code="connector.hermes_agent.deadline_exceeded", category="temporary"):
    """The action's time was over."""


class Cancelled(HermesFailed, code="connector.hermes_agent.cancelled", category="temporary"):
    """The action was cancelled."""
