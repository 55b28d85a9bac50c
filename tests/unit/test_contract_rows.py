"""capabilities.yaml: its form, its consistency, and the values it takes over."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from aip_hermes.contract import (
    ContractFileError,
    Operation,
    Validator,
    load_capability_file,
    load_operations,
    operation_schema,
)
from aip_hermes.contract.publish import contract
from aip_hermes.contract.rows import CapabilityFile, parse_capability_file
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.wire import contract_folder
from tests.support.contract_offers import endpoint_offers
from tests.support.hermes_calls import INPUTS

ROWS = list(load_operations().values())
TEXT = contract_folder().joinpath("capabilities.yaml").read_text(encoding="utf-8")

# name: method and path, title, kind, risk, effects, sensitivity, pii, redact, key, approval
PLACES = re.compile(r"\{([a-z_]+)\}")
R, W, D, M, N, X = "read", "write", "delete", "send_message", "external_network", "code_execution"
TABLE: dict[str, tuple[object, ...]] = {
    "health": ("GET /health", "health", "tool", "low", [R, N], "internal", False, False, "optional", False),
    "health_detailed": (
        "GET /health/detailed", "detailed health", "tool", "low", [R, N], "internal", False, False, "optional", False,
    ),
    "models": ("GET /v1/models", "models", "tool", "low", [R, N], "internal", False, False, "optional", False),
    "capabilities": (
        "GET /v1/capabilities", "API capabilities", "tool", "low", [R, N], "internal", False, False, "optional", False,
    ),
    "skills": ("GET /v1/skills", "skills", "tool", "low", [R, N], "internal", False, False, "optional", False),
    "toolsets": ("GET /v1/toolsets", "toolsets", "tool", "low", [R, N], "internal", False, False, "optional", False),
    "chat": (
        "POST /v1/chat/completions", "chat completion", "agent", "medium", [R, W, M, N], "confidential", True, True,
        "optional", False,
    ),
    "chat_stream": (
        "POST /v1/chat/completions", "streaming chat completion", "agent", "medium", [R, W, M, N], "confidential", True,
        True, "optional", False,
    ),
    "responses": (
        "POST /v1/responses", "response", "agent", "medium", [R, W, M, N], "confidential", True, True, "optional",
        False,
    ),
    "responses_stream": (
        "POST /v1/responses", "streaming response", "agent", "medium", [R, W, M, N], "confidential", True, True,
        "optional", False,
    ),
    "response_get": (
        "GET /v1/responses/{response_id}", "response retrieval", "agent", "low", [R, N], "internal", False, True,
        "optional", False,
    ),
    "response_delete": (
        "DELETE /v1/responses/{response_id}", "response deletion", "agent", "high", [R, D, N], "restricted", True,
        True, "required", True,
    ),
    "run_start": (
        "POST /v1/runs", "run start", "workflow", "medium", [R, W, N], "confidential", True, True, "required", False,
    ),
    "run_status": (
        "GET /v1/runs/{run_id}", "run status", "workflow", "low", [R, N], "internal", False, True, "optional", False,
    ),
    "run_events": (
        "GET /v1/runs/{run_id}/events", "run events", "workflow", "low", [R, N], "confidential", False, True,
        "optional", False,
    ),
    "run_approval": (
        "POST /v1/runs/{run_id}/approval", "run approval", "workflow", "medium", [R, W, N], "restricted", True, True,
        "required", True,
    ),
    "run_stop": (
        "POST /v1/runs/{run_id}/stop", "run stop", "workflow", "medium", [R, W, N], "restricted", True, True,
        "required", True,
    ),
    "operator": (
        "POST /v1/runs", "router/operator run", "agent", "high", [R, W, M, N, X], "confidential", True, True,
        "required", True,
    ),
    "sessions_list": (
        "GET /api/sessions", "session listing", "tool", "low", [R, N], "confidential", True, True, "optional", False,
    ),
    "session_create": (
        "POST /api/sessions", "session creation", "tool", "medium", [R, W, N], "confidential", True, True, "required",
        False,
    ),
    "session_get": (
        "GET /api/sessions/{session_id}", "session retrieval", "tool", "low", [R, N], "confidential", True, True,
        "optional", False,
    ),
    "session_patch": (
        "PATCH /api/sessions/{session_id}", "session update", "tool", "medium", [R, W, N], "confidential", True, True,
        "required", False,
    ),
    "session_delete": (
        "DELETE /api/sessions/{session_id}", "session deletion", "tool", "high", [R, D, N], "restricted", True, True,
        "required", True,
    ),
    "session_messages": (
        "GET /api/sessions/{session_id}/messages", "session messages", "tool", "low", [R, N], "confidential", True,
        True, "optional", False,
    ),
    "session_fork": (
        "POST /api/sessions/{session_id}/fork", "session fork", "tool", "medium", [R, W, N], "confidential", True, True,
        "required", False,
    ),
    "session_chat": (
        "POST /api/sessions/{session_id}/chat", "session chat", "agent", "medium", [R, W, M, N], "confidential", True,
        True, "optional", False,
    ),
    "session_chat_stream": (
        "POST /api/sessions/{session_id}/chat/stream", "streaming session chat", "agent", "medium", [R, W, M, N],
        "confidential", True, True, "optional", False,
    ),
    "jobs_list": ("GET /api/jobs", "job listing", "tool", "low", [R, N], "internal", False, True, "optional", False),
    "job_create": (
        "POST /api/jobs", "job creation", "tool", "medium", [R, W, N], "confidential", True, True, "required", True,
    ),
    "job_get": (
        "GET /api/jobs/{job_id}", "job retrieval", "tool", "low", [R, N], "internal", False, True, "optional", False,
    ),
    "job_update": (
        "PATCH /api/jobs/{job_id}", "job update", "tool", "medium", [R, W, N], "confidential", True, True, "required",
        True,
    ),
    "job_delete": (
        "DELETE /api/jobs/{job_id}", "job deletion", "tool", "high", [R, D, N], "restricted", True, True, "required",
        True,
    ),
    "job_pause": (
        "POST /api/jobs/{job_id}/pause", "job pause", "tool", "medium", [R, W, N], "internal", True, True, "required",
        True,
    ),
    "job_resume": (
        "POST /api/jobs/{job_id}/resume", "job resume", "tool", "medium", [R, W, N], "internal", True, True,
        "required", True,
    ),
    "job_run": (
        "POST /api/jobs/{job_id}/run", "immediate job execution", "agent", "high", [R, W, N], "confidential", True,
        True, "required", True,
    ),
}  # fmt: skip
TURNS = {"chat", "chat_stream", "responses", "responses_stream", "session_chat", "session_chat_stream"}
EXPERIMENTAL = {"skills", "toolsets", "response_get", "response_delete"}
TIMEOUTS_MS = {"run_events": 300_000, "operator": 900_000}
HTTP_SECONDS = {**dict.fromkeys(TURNS, 900), "run_start": 60, "operator": 60, "run_events": 900}

# name: modes beside sync, completion, cancel, latency; rows that are not here: none, sync, no, 5 s
EXECUTION: dict[str, tuple[set[str], str, bool, int]] = {
    **dict.fromkeys(("chat", "responses", "session_chat"), ({"async"}, "sync", False, 5_000)),  # D18
    "run_start": ({"async"}, "sync", False, 5_000),
    "chat_stream": ({"async", "streaming"}, "streaming", True, 30_000),
    "responses_stream": ({"async", "streaming"}, "streaming", True, 30_000),
    "run_events": ({"async", "streaming"}, "streaming", True, 30_000),
    "operator": ({"async", "streaming"}, "streaming", True, 30_000),
    "session_chat_stream": ({"async", "streaming"}, "streaming", True, 30_000),  # async: D18
}


@pytest.mark.requirement("contract:rows:reference-values")
def test_the_rows_are_those_of_the_table_in_its_order() -> None:
    assert list(load_operations()) == list(TABLE)


@pytest.mark.requirement("contract:rows:reference-values")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_the_values_of_the_table(row: Operation) -> None:
    assert (
        row.http,
        row.title,
        row.kind,
        row.risk,
        list(row.effects),
        row.sensitivity,
        row.pii,
        row.redact,
        row.key,
        row.approval is not None,
    ) == TABLE[row.name]
    assert row.stability == ("experimental" if row.name in EXPERIMENTAL else "stable")
    assert row.auth is (row.name != "health")
    assert row.http_timeout_s == HTTP_SECONDS.get(row.name, 30)
    assert row.turn is (row.name in TURNS)


@pytest.mark.requirement("contract:rows:reference-values")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_contract_has_the_common_values(row: Operation) -> None:
    timeout_ms = 900_000 if row.name in TURNS else TIMEOUTS_MS.get(row.name, 60_000)
    modes, completion, cancel, latency_ms = EXECUTION.get(row.name, (set(), "sync", False, 5_000))
    published = contract(row, row.timeout_ms).wire()
    gated = TABLE[row.name][-1]

    assert published["idempotency"] == {
        "requirement": row.key,
        "collision_behavior": "return_original_result",
        "key_scope": "capability",
        **({"ttl_ms": 86_400_000} if row.key == "required" else {}),
    }
    assert published["execution"] == {
        "supports_sync": True,
        "supports_async": "async" in modes,
        "supports_streaming": "streaming" in modes,
        "supports_cancel": cancel,
        "supports_retry": row.risk == "low",
        "expected_completion": completion,
        "retry_safety": "safe" if row.risk == "low" else "unsafe",
    }
    assert published["sla"] == {
        "expected_latency_ms": latency_ms,
        "timeout_ms": timeout_ms,
        "async_expected": row.name in {"run_start", "run_events", "operator"},
        "max_queue_delay_ms": 10_000,
        "availability_target": "99.9%",
    }
    assert published["compensation"] == {"mode": "rollback_not_supported", "requires_approval": gated}
    assert ("approval" in published) is gated


@pytest.mark.requirement("contract:rows:reference-values")
def test_a_delete_is_decided_by_somebody_else() -> None:
    approval = contract(load_operations()["session_delete"], 60_000).wire()["approval"]

    assert approval.pop("reason").strip()
    assert approval == {
        "required": True,
        "approver_selector": {"type": "tenant_policy"},
        "ttl_ms": 900_000,
        "evidence_requirements": ["reason", "input_snapshot", "policy_decision"],
        "minimum_distinct_principals": 1,
        "separation_of_duties": {
            "requester_must_differ": True,
            "operator_must_differ": False,
            "allow_self_approval": False,
        },
    }


@pytest.mark.requirement("contract:rows:reference-values")
def test_a_turn_publishes_the_timeout_of_its_endpoint() -> None:
    timeouts = {
        offer.handler.operation.name: contract(offer.handler.operation, offer.timeout_ms).sla
        for offer in endpoint_offers(turn_timeout_s=120)
    }
    assert {name: sla.timeout_ms for name, sla in timeouts.items() if sla} == {
        name: 120_000 if name in TURNS else TIMEOUTS_MS.get(name, 60_000) for name in TABLE
    }


@pytest.mark.requirement("contract:rows:consistent")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_does_not_contradict_itself(row: Operation) -> None:
    published = contract(row, row.timeout_ms)

    assert row.read_only is (published.execution.retry_safety == "safe") is published.execution.supports_retry
    assert len(set(row.effects)) == len(row.effects) > 0
    if row.read_only:
        assert (row.method, row.key, row.serial, row.approval) == ("GET", "optional", "none", None)
    if "delete" in row.effects:
        assert row.risk in {"high", "critical"}
        assert row.key == "required"
        assert row.approval
        assert row.prepare == "target"
    if row.approval:
        # What can be read of a target is read; only what is yet to be made has none.
        assert (row.prepare == "target") is (row.target is not None) is ("{" in row.path)
        assert row.key == "required"
        assert published.approval is not None
        assert published.approval.evidence_requirements
        assert published.approval.separation_of_duties.requester_must_differ
    if row.pii or row.sensitivity in {"restricted", "regulated"}:
        assert row.redact
    assert (row.stream != "none") is row.streaming is (row.completion == "streaming") is row.cancel
    assert row.stop == "none" or row.cancel
    # Who follows what it started answers with where that stands; its events are chunks only.
    assert (row.output == "stream_answer.json") is (row.stream != "none" and row.follow == "none")
    assert "none" in (row.stream, row.follow) or "max_events" not in operation_schema(row.input)["properties"]
    assert row.stream == "none" or row.follow != "none" or "max_events" in operation_schema(row.input)["properties"]
    assert row.turn <= ("send_message" in row.effects)
    assert ("send_message" in row.effects) <= (row.key == "optional" or row.approval is not None)
    assert (row.follow != "none") is (row.recovery == "observe")
    assert (row.serial == "turn") <= row.turn
    assert (row.method in {"GET", "DELETE"}) <= (row.body == "none") <= (row.method != "PATCH")
    schema = operation_schema(row.input)
    places = PLACES.findall(row.path)
    assert [name for name in schema.get("required", []) if name.endswith("_id")] == places
    assert set(row.query) <= set(schema["properties"])
    if row.target is not None:
        assert PLACES.findall(load_capability_file().targets[row.target].path) == places
    # A session is named in one place: in the path, or where the row says, or nowhere.
    assert not (row.session_place and "session_id" in places)
    assert (row.prepare == "named") is (row.session_place is not None)
    if row.serial != "none":
        assert row.session_place or "session_id" in places


@pytest.mark.requirement("contract:rows:reference-values")
def test_the_totals_are_those_of_the_published_part_of_the_table() -> None:
    risks = [row.risk for row in ROWS]

    assert len(ROWS) == 35
    assert {risk: risks.count(risk) for risk in sorted(set(risks))} == {"high": 5, "low": 14, "medium": 16}
    assert sum(row.key == "required" for row in ROWS) == 15
    assert sum(row.approval is not None for row in ROWS) == 11
    assert sum(row.read_only for row in ROWS) == 14
    assert [row.name for row in ROWS if "delete" in row.effects] == ["response_delete", "session_delete", "job_delete"]


@pytest.mark.requirement("contract:rows:reference-values")
def test_the_published_bounds_are_those_that_are_kept() -> None:
    facts = load_capability_file().connector

    assert (facts.max_stream_response_bytes, facts.max_sse_frame_bytes) == (67_108_864, 1_048_576)
    assert facts.default_sse_event_limit == 4_096
    for row in (row for row in ROWS if row.stream != "none" and row.follow == "none"):
        allowed = operation_validator(row.input)
        most = facts.maximum_sse_event_limit
        good = [n for n in (0, 1, most, most + 1) if not allowed.violations({**INPUTS[row.name], "max_events": n})]
        assert good == [1, most]


@pytest.mark.requirement("contract:rows:schema-agrees")
def test_the_file_holds_under_its_schema() -> None:
    schema = json.loads(contract_folder().joinpath("schemas", "capabilities.schema.json").read_text(encoding="utf-8"))
    checked = Validator(schema)

    assert checked.violations(yaml.safe_load(TEXT)) == []
    assert set(schema["$defs"]["operation"]["properties"]) == set(Operation.model_fields)
    assert set(schema["properties"]) == set(CapabilityFile.model_fields)
    for member in ("connector", "common"):
        model: Any = CapabilityFile.model_fields[member].annotation
        assert set(schema["properties"][member]["properties"]) == set(model.model_fields)

    delete_without_approval = yaml.safe_load(TEXT)
    for row in delete_without_approval["operations"]:
        row.pop("approval", None)
    deletes = [number for number, row in enumerate(ROWS) if "delete" in row.effects]
    told = checked.violations(delete_without_approval)
    assert [line for line in told if line.split("/")[2].split(":")[0] in map(str, deletes)] == [
        f"/operations/{number}: required: missing `approval`" for number in deletes
    ]


@pytest.mark.requirement("contract:rows:unknown-member-stops")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    auth: false\n", "    auht: false\n", "row `health`, member `auht` is unknown"),
        ("    title: session fork\n", "", "row `session_fork`, member `title` is missing"),
        ("    risk: high\n", "    risk: hihg\n", "row `response_delete`, member `risk`: Input should be"),
        ("  key_scope: capability\n", "  key_scope: action\n", "the file, member `common.key_scope`: Input should be"),
        ("connector:\n", "conector:\n", "the file, member `connector` is missing"),
        ("    auth: false\n", "    auth: false\n    auth: true\n", "member `auth` is written twice"),
        ("  - name: models\n", "  - name: health\n", "row `health` is written twice"),
        ("operations:\n", "operations: [\n", "capabilities.yaml is no YAML"),
        ("    target: job\n", "    target: jop\n", "row `job_update`, member `target` names no target"),
        ("    compared: [created_at, status]\n", "    compared: [created]\n", "the file, member `targets.response`: "),
    ],
)
def test_a_wrong_member_stops_the_start_and_is_named(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(ContractFileError) as refused:
        parse_capability_file(TEXT.replace(old, new, 1))
    assert said in str(refused.value)


@pytest.mark.requirement("contract:rows:unknown-member-stops")
def test_a_file_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ContractFileError):
        parse_capability_file("- health")
