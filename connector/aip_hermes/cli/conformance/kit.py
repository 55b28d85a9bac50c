"""The connector kit as data: its scenarios, what each asserts, which numbers are right, and what is not run and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.wire import Capability

__all__ = ["ADMISSION", "ADMITTED", "SCENARIOS", "Assertion", "Check", "Scenario", "kit_report"]

ADMISSION = "connector.atomic_manifest_admission"


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """name: as the kit has it. expected: the observation that proves it. instead: where the kit uses another operation
    than we do, and why."""

    name: str
    expected: Mapping[str, Any]
    instead: str | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """required: whether what is published makes the kit run it. not_run: why it is not run here."""

    id: str
    required: Callable[[Sequence[Capability]], bool]
    assertions: Sequence[Assertion] = ()
    unproven: Sequence[str] = ()
    not_run: str | None = None

    @property
    def check(self) -> str:
        return f"connector.behavior.{self.id}"

    @property
    def names(self) -> list[str]:
        return [*(assertion.name for assertion in self.assertions), *self.unproven]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the report. assertions: name → held; None: not run. artifacts: ids under which the evidence lies.

    differences: assertion that did not hold → what was expected, what was observed. notes: assertion → what differs
    from the kit in how it is proven. failure: why the scenario ended before its time.
    """

    id: str
    required: bool
    assertions: Mapping[str, bool | None]
    artifacts: Sequence[str] = ()
    reason: str | None = None
    differences: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None

    @property
    def passed(self) -> bool:
        if self.failure is not None:
            return False
        if not self.required:
            return True
        return bool(self.artifacts) and all(held is True for held in self.assertions.values())


def kit_report(
    published: Sequence[Capability],
    observed: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]],
    *,
    failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the thirteen checks. observed: scenario id → (assertion → observation, artifact ids).

    failures: scenario id → why it ended early.
    """
    checks = []
    for scenario in (_ADMISSION, *SCENARIOS):
        seen, artifacts = observed.get(scenario.id, ({}, ()))
        held: dict[str, bool | None] = dict.fromkeys(scenario.unproven)
        held |= {each.name: seen.get(each.name) == each.expected for each in scenario.assertions}
        failure = (failures or {}).get(scenario.id)
        checks.append(
            Check(
                id=ADMISSION if scenario is _ADMISSION else scenario.check,
                # Where nothing is known to be published, what failed to show that is no reason to ask for less.
                required=failure is not None or scenario.required(published),
                assertions=held,
                artifacts=artifacts,
                reason=scenario.not_run,
                differences={
                    each.name: (each.expected, seen.get(each.name))
                    for each in scenario.assertions
                    if held[each.name] is False
                },
                notes={each.name: each.instead for each in scenario.assertions if each.instead is not None},
                failure=failure,
            )
        )
    return checks


def _any(published: Sequence[Capability]) -> bool:
    return bool(published)


def _contract(test: Callable[[Any], bool]) -> Callable[[Sequence[Capability]], bool]:
    return lambda published: any(each.contract is not None and test(each.contract) for each in published)


_NO_DELEGATION = "delegation needs a peer, which comes later; "

ADMITTED: Mapping[str, Any] = {
    "twice": "refused whole",
    "valid": True,
    "own_prefix": True,
    "in_manifest": "all",
    "provider_calls": 0,
}

_ADMISSION = Scenario(
    id="admission", required=lambda _: True, assertions=(Assertion(name="admitted", expected=ADMITTED),)
)

SCENARIOS: Sequence[Scenario] = (
    Scenario(
        id="identity_credentials",
        required=_any,
        assertions=(
            Assertion(
                name="transport_actor_bound",
                expected={
                    "principal": "agent:example:requester",
                    "tenant": "tenant-a",
                    "correlation": "trace-1",
                    "bearer": True,
                    "forged_seen": False,
                },
            ),
            Assertion(
                name="tenant_isolated",
                expected={
                    "through_runtime": "resource.not_found",
                    "at_connector": "connector.hermes_agent.tenant_mismatch",
                    "extra_provider_calls": 0,
                },
            ),
            Assertion(name="credential_handle_opaque", expected={"seen_in": []}),
        ),
    ),
    Scenario(
        id="schema_enforcement",
        required=_any,
        assertions=(
            Assertion(
                name="invalid_input_rejected",
                expected={
                    "status": "failed",
                    "code": "action.input_schema_invalid",
                    "uncertain": False,
                    "provider_calls": 0,
                },
            ),
            Assertion(
                name="invalid_output_rejected",
                expected={
                    "status": "failed",
                    "code": "connector.hermes_agent.operator_outcome_unknown",
                    "uncertain": True,
                    "provider_starts": 1,
                },
                instead=_NO_DELEGATION + "a start that is answered in prose is no start",
            ),
        ),
    ),
    Scenario(
        id="idempotency_duplicates",
        required=_contract(lambda contract: contract.idempotency.requirement == "required"),
        assertions=(
            Assertion(
                name="duplicate_suppressed",
                expected={"statuses": ["completed", "completed"], "provider_starts": 1},
            ),
            Assertion(name="collision_rejected", expected={"code": "action.id_conflict", "provider_starts": 1}),
            Assertion(
                name="delivery_id_stable",
                expected={
                    "after_restart": ("the action", "run_1"),
                    "replay": ("the action", "run_1"),
                    "provider_starts": 1,
                },
            ),
        ),
    ),
    Scenario(
        id="retry_exhaustion",
        required=_contract(lambda contract: contract.execution.supports_retry),
        assertions=(
            Assertion(
                name="retryable_error_preserved",
                expected={
                    "code": "connector.hermes_agent.remote_temporary",
                    "category": "temporary",
                    "retryable": True,
                    "result": "connector.hermes_agent.remote_temporary",
                },
            ),
            Assertion(name="backoff_observed", expected={"waited_ms": 1000, "state": "queued", "provider_calls": 1}),
            Assertion(
                name="exhaustion_dead_lettered",
                expected={"state": "dead_lettered", "attempts": 2, "dead_letters": 1, "provider_calls": 2},
            ),
        ),
    ),
    Scenario(
        id="cancellation_races",
        required=_contract(lambda contract: contract.execution.supports_cancel),
        assertions=(
            Assertion(
                name="before_dispatch_cancelled",
                expected={
                    "status": "cancelled",
                    "code": "connector.hermes_agent.cancelled",
                    "uncertain": False,
                    "provider_calls": 0,
                },
            ),
            Assertion(name="in_flight_cancelled", expected={"status": "cancelled", "stop_calls": 1}),
            Assertion(name="late_cancel_preserved_terminal", expected={"status": "completed", "stop_calls": 0}),
        ),
    ),
    Scenario(
        id="streaming_backpressure",
        required=_contract(lambda contract: contract.execution.supports_streaming),
        assertions=(
            Assertion(
                name="ordered_chunks",
                expected={"while_running": [0], "state": "running", "sequences": "0, 1, 2, … without a gap"},
            ),
            Assertion(
                name="bounded_backpressure",
                expected={"status": "failed", "code": "connector.hermes_agent.stream_truncated", "chunks": 1},
            ),
            Assertion(name="terminal_chunk_unique", expected={"done": 1, "last": "done"}),
        ),
    ),
    Scenario(
        id="errors_uncertain_outcomes",
        required=_any,
        assertions=(
            Assertion(
                name="protocol_fields_preserved",
                expected={
                    "read": {"remote_status": 503, "retryable": True, "uncertain": False},
                    "mutation": {"remote_status": 503, "retryable": False, "uncertain": True},
                },
            ),
            Assertion(
                name="uncertain_outcome_reconciled",
                expected={"read_back": True, "again": "the stored result", "provider_starts": 1},
            ),
            Assertion(name="error_secrets_redacted", expected={"seen_in": []}),
        ),
    ),
    Scenario(
        id="approval_lifecycle",
        required=_contract(lambda contract: contract.approval is not None and contract.approval.required),
        assertions=(
            Assertion(
                name="authority_verified",
                expected={"code": "policy.approver_unauthorized", "status": "pending"},
            ),
            Assertion(
                name="quorum_enforced",
                expected={"after_one": ("pending", 0), "after_two": ("approved", 1)},
            ),
            Assertion(
                name="evidence_persisted",
                expected={
                    "approvers": ["human:example:reviewer", "human:example:second"],
                    "evidence": [["ticket-1:human:example:reviewer"], ["ticket-1:human:example:second"]],
                },
            ),
            Assertion(
                name="resume_once",
                expected={
                    "asked": "requires_human",
                    "answered": ["completed", "completed"],
                    "provider_answers": 1,
                },
            ),
        ),
    ),
    Scenario(
        id="transaction_lifecycle",
        required=_contract(lambda contract: contract.transaction is not None),
        unproven=(
            "plan_before_commit",
            "provider_operation_checkpointed",
            "reconcile_before_retry",
            "compensation_governed",
        ),
        not_run="does not apply: Hermes has no transactions",
    ),
    Scenario(
        id="audit_redaction",
        required=_any,
        assertions=(
            Assertion(
                name="receipts_emitted",
                expected={"types": ["approval_requested", "approval_granted", "result_returned"], "holds": True},
            ),
            Assertion(
                name="audit_correlated",
                expected={
                    "requested": ["corr_kit_audit"],
                    "completed": ["corr_kit_audit"],
                    "audit": ["corr_kit_audit"],
                },
            ),
            Assertion(name="sensitive_fields_redacted", expected={"seen_in": []}),
            Assertion(name="raw_secret_absent", expected={"seen_in": []}),
        ),
    ),
    Scenario(
        id="webhook_security",
        required=lambda _: False,
        unproven=("signature_verified", "skew_rejected", "replay_rejected"),
        not_run="does not apply: no webhook profile is offered",
    ),
    Scenario(
        id="restart_reconnect",
        required=_any,
        assertions=(
            Assertion(
                name="state_recovered",
                expected={
                    "state": "failed",
                    "code": "connector.hermes_agent.operator_outcome_unknown",
                    "uncertain": True,
                },
            ),
            Assertion(
                name="duplicate_effect_prevented",
                expected={
                    "code": "connector.hermes_agent.operator_outcome_unknown",
                    "uncertain": True,
                    "provider_starts": 1,
                },
            ),
            Assertion(
                name="reconnect_cursor_resumed",
                expected={
                    "before": [0, 1],
                    "after": [2, 3],
                    "last": "done",
                    "completed": "completed",
                    "provider_starts": 1,
                },
            ),
        ),
    ),
)
