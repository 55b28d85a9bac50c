"""Every error code there is: those of the published table and those of ours, what carries each, and who proves it.

One row per code. A row is provoked over HTTP by tests/contract/test_error_table.py, or names the test that provokes it
(`proven`), or says why nobody ever gets it from this server (`absent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["CODES", "Carrier", "ErrorCode"]

Carrier = Literal["error", "result", "pending", "rule"]
"""error: an error envelope. result: a failed result. pending: a result that waits for a decision. rule: `details.code`
of an `auth.not_authorized`, which stands for many (design D9)."""
STATUS: Final = {
    "auth": 401, "policy": 403, "temporary": 503, "transport": 503, "connector": 502, "economic": 402, "permanent": 400,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorCode:
    """category, retryable: as sent by default. status: of the HTTP answer. proven: a test file. absent: a reason."""

    code: str
    category: str
    retryable: bool
    carrier: Carrier
    status: int
    proven: str | None
    absent: str | None


def _codes(
    carrier: Carrier,
    category: str,
    names: str,
    *,
    retryable: bool = False,
    status: int | None = None,
    proven: str | None = None,
    absent: str | None = None,
) -> Iterator[ErrorCode]:
    """names: separated by blanks; one that begins with a dot goes on behind the first part of the one before."""
    family = ""
    for name in names.split():
        code = family + name if name.startswith(".") else name
        family = code.partition(".")[0]
        said = STATUS[category] if carrier == "error" else 401 if carrier == "rule" else 200
        yield ErrorCode(
            code=code,
            category="auth" if carrier == "rule" else category,
            retryable=retryable,
            carrier=carrier,
            status=status or said,
            proven=f"tests/{proven}.py" if proven else None,
            absent=absent,
        )


_PUBLISHED: Final = (
    *_codes("error", "permanent", "action.id_conflict .not_found .gone approval.not_found receipt.not_found"),
    *_codes("error", "permanent", "session.not_found query.invalid_cursor stream.cursor_expired resource.not_found"),
    *_codes("error", "permanent", "capability.unsupported"),
    *_codes("error", "temporary", "action.result_not_ready"),
    *_codes("error", "temporary", "storage.unavailable runtime.handler_failed", retryable=True),
    *_codes("error", "auth", "auth.not_authorized .tenant_mismatch audit.not_authorized replay.message_id"),
    *_codes("result", "permanent", "action.input_schema_invalid .output_schema_invalid"),
    *_codes("result", "policy", "execution.mode_unsupported idempotency.required .conflict transaction.unsupported"),
    *_codes("result", "policy", "sla.queue_delay_exceeded policy.approval_unverified .approval_denied"),
    *_codes("result", "policy", "policy.approval_expired"),
    *_codes("result", "temporary", "idempotency.in_progress", retryable=True),
    *_codes("result", "temporary", "sla.timeout_exceeded"),
    *_codes("result", "connector", "connector.runtime_failure"),
    *_codes("pending", "policy", "policy.human_approval_required"),
    *_codes("rule", "policy", "policy.approval_not_pending .approval_action_mismatch .approval_hash_mismatch"),
    *_codes("rule", "policy", "policy.approval_decision_id_required .approval_evidence_missing"),
    *_codes("rule", "policy", "policy.approver_identity_mismatch .approver_unauthorized"),
    *_codes("rule", "policy", "policy.separation_of_duties.requester"),
    *_codes("rule", "policy", "policy.approval_revocation_target_required .approval_revocation_target_missing"),
    *_codes("rule", "policy", "policy.approval_constraint_failed .approval_constraint_missing_field"),
    *_codes(
        "rule", "policy", "policy.separation_of_duties.operator", proven="contract/test_runtime_approvals_duties"
    ),
    *_codes("rule", "policy", "policy.approver_tenant_mismatch", proven="contract/test_runtime_decisions"),
    *_codes("result", "policy", "policy.approval_revoked", proven="contract/test_runtime_approvals_quorum"),
    *_codes("result", "policy", "idempotency.scope_missing .input_hash_mismatch",
            proven="contract/test_runtime_fence_contract"),
    *_codes("result", "permanent", "connector.operation_unsupported", proven="contract/test_runtime_approvals_duties"),
    *_codes("error", "permanent", "transaction.not_found callback.delivery_not_found",
            proven="contract/test_server_records"),
)  # fmt: skip

_NO_SESSIONS: Final = "there are no AIP sessions: session.not_found"
_NO_CREDENTIAL: Final = "the endpoint's key belongs to the operator: no capability asks a caller for one"
_BELIEVES: Final = "who acts is who holds the token; members that say otherwise are not believed"
_ABSENT: Final = (
    *_codes("result", "policy", "capability.schema_invalid", absent="schemas are checked when the server starts"),
    *_codes("result", "policy", "idempotency.pending_resume_denied",
            absent="a pending key is resumed by its action's state, never by a claim"),
    *_codes("result", "policy", "credential.required .scope_missing .issuer_denied .tenant_mismatch",
            absent=_NO_CREDENTIAL),
    *_codes("error", "auth", "credential.expired", absent=_NO_CREDENTIAL),
    *_codes("result", "policy", "policy.approval_not_granted",
            absent="a carried approval is never believed: policy.approval_unverified"),
    *_codes("rule", "policy", "policy.approval_mismatch .approval_capability_mismatch",
            absent="a decision names one approval, and that is the one it is applied to"),
    *_codes(
        "result", "policy",
        "transaction.mode_unsupported .plan_required .plan_not_found .plan_capability_mismatch .plan_not_committable"
        " .plan_already_claimed .plan_missing_payload .plan_principal_mismatch .plan_expired"
        " .plan_transaction_mismatch .plan_input_hash_mismatch .plan_identity_missing .plan_tenant_mismatch"
        " .plan_external_account_mismatch .plan_handler_unsupported .commit_already_claimed .rollback_not_supported"
        " .compensation_unsupported .compensation_target_required .compensation_target_not_completed"
        " .compensation_target_not_committed .compensation_window_expired .retry_denied .execute_state_invalid"
        " .reconciliation_required .reconciliation_id_required .provider_operation_required",
        absent="no transactions: every mode but execute is transaction.unsupported",
    ),
    *_codes("result", "temporary", "transaction.reconciliation_pending", retryable=True,
            absent="a reconciliation answers a verdict, `indeterminate` where it is still unknown"),
    *_codes("error", "temporary", "transaction.reconciliation_capacity callback.delivery_capacity", retryable=True,
            absent="neither transactions nor callbacks"),
    *_codes("error", "temporary", "connector.admission_capacity", retryable=True, absent="no remote fleet"),
    *_codes("error", "connector", "connector.operation_failed", absent="every failure of the connector has its code"),
    *_codes("error", "auth", "auth.unverified_actor .actor_mismatch .claim_mismatch", absent=_BELIEVES),
    *_codes("error", "auth", "auth.session_mismatch session.resume_rejected", absent=_NO_SESSIONS),
    *_codes("error", "permanent", "session.closed", absent=_NO_SESSIONS),
    *_codes("error", "auth", "auth.tenant_required", absent="the tenant is that of the token"),
    *_codes("error", "auth", "auth.tenant_membership_expired", absent="a token and its tenant end together"),
    *_codes("error", "auth", "auth.expired", absent="an expired token is unknown: auth.native_http_unauthorized"),
    *_codes("error", "auth", "auth.identity_resolution_failed", absent="no identity is asked for elsewhere"),
    *_codes("error", "auth", "auth.signature.invalid", absent="messages are authenticated by their bearer"),
    *_codes("error", "auth", "delegation.target_mismatch", absent="nothing is delegated"),
    *_codes("error", "permanent", "handshake.no_compatible_profile", absent="handshakes are capability.unsupported"),
    *_codes("error", "permanent", "manifest.admission_failed", absent="manifests are not taken from outside"),
    *_codes("error", "permanent", "action.dead_lettered", absent="a dead letter keeps its result, which is answered"),
    *_codes("result", "permanent", "action.dead_letter", absent="every failed result has an error of its own"),
    *_codes("error", "permanent", "resource.gone", absent="there are no AIP resources: resource.not_found"),
    *_codes("error", "permanent", "query.conflict", absent="no query has selectors that exclude each other"),
    *_codes("error", "permanent", "stream.event_too_large .event_encoding_failed",
            absent="events of the runtime are bounded where they are made"),
)  # fmt: skip

_OURS: Final = (
    *_codes("error", "permanent", "envelope.too_large", status=413),
    *_codes("error", "permanent", "envelope.decode.invalid schema.envelope.invalid query.invalid"),
    *_codes("error", "auth", "auth.native_http_unauthorized"),
    *_codes("error", "temporary", "runtime.at_capacity", retryable=True),
    *_codes("error", "permanent", "envelope.content_type.unsupported", status=415,
            proven="contract/test_server_messages"),
    *_codes("error", "permanent", "route.not_found", status=404, proven="contract/test_server_reads"),
    *_codes("error", "permanent", "route.method_not_allowed", status=405, proven="contract/test_server_reads"),
    *_codes("error", "permanent", "gateway.error", status=500, proven="contract/test_server_faults"),
    *_codes("error", "temporary", "gateway.stopping", proven="contract/test_server_serving"),
    *_codes("error", "permanent", "connector_catalog.invalid_query .stale_cursor", proven="contract/test_server_reads"),
    *_codes("error", "temporary", "approval.unreadable", proven="contract/test_runtime_approvals_broken"),
    *_codes("error", "permanent", "reconciliation.not_found", proven="contract/test_reconcile_runtime"),
    *_codes("error", "permanent", "action.cancel_unsupported", proven="contract/test_aipctl_cancel"),
    *_codes("error", "temporary", "runtime.stopping", retryable=True, proven="contract/test_runtime_execution"),
    *_codes("result", "permanent", "action.invalid_input", proven="contract/test_runtime_checks"),
    *_codes("result", "temporary", "runtime.interrupted", retryable=True, proven="contract/test_runtime_crash"),
    *_codes("result", "temporary", "runtime.outcome_unknown", proven="contract/test_runtime_crash"),
    *_codes("result", "temporary", "runtime.chunk_not_stored", proven="contract/test_runtime_streams"),
    *_codes("result", "temporary", "runtime.state_unavailable", retryable=True, proven="contract/test_runtime_state"),
    *_codes("rule", "policy", "policy.approval_input_not_visible", proven="contract/test_runtime_decisions"),
    *_codes("rule", "policy", "policy.approval_vote_repeated .approval_decision_conflict",
            proven="contract/test_runtime_approvals_quorum"),
    *_codes("rule", "policy", "policy.delegation_chain", proven="contract/test_runtime_execution"),
    *_codes("rule", "policy", "policy.invocation_pattern", proven="contract/test_server_tenancy"),
    *_codes("rule", "policy", "policy.principal_kind", proven="contract/test_server_auth"),
)  # fmt: skip


def _hermes(category: str, names: str, proven: str, *, retryable: bool = False) -> Iterator[ErrorCode]:
    codes = " ".join(f"connector.hermes_agent.{name}" for name in names.split())
    return _codes("result", category, codes, retryable=retryable, proven=proven)


_HERMES: Final = (
    *_hermes("auth", "authentication", "contract/test_hermes_failures"),
    *_hermes("auth", "missing_credential tenant_mismatch", "unit/test_hermes_handler"),
    *_hermes("permanent", "configuration_or_input", "unit/test_hermes_request"),
    *_hermes("permanent", "remote_rejected", "contract/test_hermes_failures"),
    *_hermes("permanent", "session_superseded session_closed target_changed", "unit/test_hermes_handler"),
    *_hermes("permanent", "operator_policy operator_start_rejected", "contract/test_operator_start"),
    *_hermes("temporary", "remote_temporary deadline_exceeded", "contract/test_hermes_failures"),
    *_hermes("temporary", "session_busy", "contract/test_runtime_execution", retryable=True),
    *_hermes("temporary", "operator_state operator_outcome_unknown", "contract/test_operator_interrupted"),
    *_hermes("temporary", "cancelled", "contract/test_aipctl_cancel"),
    *_hermes("transport", "transport", "contract/test_hermes_failures"),
    *_hermes("connector", "invalid_response not_a_stream", "contract/test_hermes_failures"),
    *_hermes("connector", "stream_failed stream_incomplete", "contract/test_hermes_streams"),
    *_hermes("connector", "stream_truncated stream_publication", "contract/test_hermes_stream_limits"),
    *_hermes("connector", "outcome_unknown", "contract/test_operator_interrupted"),
    *_hermes("connector", "operator_run_failed", "contract/test_operator_follow"),
)

CODES: Final = {row.code: row for row in (*_PUBLISHED, *_ABSENT, *_OURS, *_HERMES)}
