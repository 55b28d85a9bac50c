"""The manifest report: five checks over a manifest, the strict contract check among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aip_hermes.wire import Capability, CapabilityContract, Manifest

__all__ = ["CHECKS", "Finding", "manifest_report"]

Finding = tuple[str, str]
"""The operation, or what else is concerned, and the rule that does not hold."""

CHECKS: Final = (
    "discovery.manifest",
    "discovery.profile_set",
    "discovery.profile_bindings",
    "enterprise.capability_contract",
    "profile.mcp.tools_list",
)
_BOUND: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "aip.native.http.v1": (("native_http", "messages"), ("native_http", "manifest")),
    "aip.native.nats.v1": (("native_nats", "subject"),),
    "aip.mcp.compat.v1": (("mcp", "jsonrpc"),),
    "aip.a2a.compat.v1": (("a2a", "agent_card"), ("a2a", "jsonrpc")),
}
_GRAVE: Final = frozenset({"financial", "legal", "medical", "identity", "delete", "send_message"})


def manifest_report(manifest: Manifest, *, required: tuple[str, ...]) -> dict[str, set[Finding]]:
    """Return what each check finds. required: profiles that must be there."""
    found = {
        "discovery.manifest": _manifest(manifest),
        "discovery.profile_set": _profile_set(manifest, required),
        "discovery.profile_bindings": _profile_bindings(manifest),
        "enterprise.capability_contract": _contracts(manifest),
        "profile.mcp.tools_list": _tools(manifest),
    }
    return {check: set(findings) for check, findings in found.items()}


def _manifest(manifest: Manifest) -> Iterator[Finding]:
    if not manifest.manifest_version.strip():
        yield "manifest", "version is empty"
    if not manifest.profiles:
        yield "manifest", "no profile"
    for capability in manifest.capabilities:
        if not capability.name.strip():
            yield capability.id, "name is empty"
        if not isinstance(capability.input_schema, dict):
            yield capability.id, "input schema is no object"


def _profile_set(manifest: Manifest, required: tuple[str, ...]) -> Iterator[Finding]:
    if not all(profile.strip() for profile in manifest.profiles):
        yield "manifest", "a profile is empty"
    for profile in set(required) - set(manifest.profiles):
        yield profile, "is missing"


def _profile_bindings(manifest: Manifest) -> Iterator[Finding]:
    compatibility: Any = manifest.compatibility or {}
    for profile in manifest.profiles:
        for group, member in _BOUND.get(profile, ()):
            if not compatibility.get(group, {}).get(member):
                yield profile, f"{group}.{member} is missing"


def _contracts(manifest: Manifest) -> Iterator[Finding]:
    for capability in manifest.capabilities:
        contract = capability.contract
        if contract is None:
            if capability.risk in ("high", "critical") or capability.requires_human_approval:
                yield _name(capability), "no contract"
            continue
        for rule in _broken(contract):
            yield _name(capability), rule


def _broken(contract: CapabilityContract) -> Iterator[str]:
    execution, approval = contract.execution, contract.approval
    effects = set(contract.side_effects)
    required = contract.idempotency.requirement == "required"
    approved = approval is not None and approval.required
    if not effects:
        yield "no side effects"
    if not (execution.supports_sync or execution.supports_async or execution.supports_streaming):
        yield "no mode"
    if required and execution.retry_safety == "safe" and not execution.supports_retry:
        yield "safe to retry without retries"
    if approved and approval is not None and not approval.evidence_requirements:
        yield "approval without evidence"
    if not contract.data.redaction_required and (
        contract.data.contains_pii or contract.data.sensitivity in ("restricted", "regulated")
    ):
        yield "no redaction"
    if effects - {"read"} and not required:
        yield "an effect other than read without a required key"
    if effects & _GRAVE and not approved:
        yield "a grave effect without approval"
    if contract.credentials is not None and contract.credentials.required and not contract.credentials.required_scopes:
        yield "a credential without scopes"
    if contract.transaction is not None:
        modes = set(contract.transaction.supported_modes)
        if not modes or ("commit" in modes and "plan" not in modes):
            yield "a commit without a plan, or no transaction mode"
    compensation = contract.compensation
    if compensation is not None and compensation.mode == "supported" and not compensation.compensation_capability_id:
        yield "compensation without its capability"


def _tools(manifest: Manifest) -> Iterator[Finding]:
    names = [capability.name for capability in manifest.capabilities]
    for name in {name for name in names if not name.strip() or names.count(name) > 1}:
        yield name, "is no tool's own name"


def _name(capability: Capability) -> str:
    return capability.id.rpartition(":")[2]
