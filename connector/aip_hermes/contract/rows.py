"""capabilities.yaml, read once and checked member by member.

A row that says something unknown, twice, or not at all stops the start with one sentence per fault that names row and
member.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aip_hermes.contract.operation import Operation
from aip_hermes.wire import contract_folder

__all__ = [
    "ApprovalValues",
    "CapabilityFile",
    "CommonValues",
    "ConnectorFacts",
    "ContractFileError",
    "Target",
    "load_capability_file",
    "load_operations",
    "load_target",
    "parse_capability_file",
]

_MAX_FAULTS = 16
_Milliseconds = Annotated[int, Field(strict=True, gt=0)]
_Bytes = Annotated[int, Field(strict=True, gt=0)]
_Count = Annotated[int, Field(strict=True, gt=0)]


class ContractFileError(ValueError):
    """capabilities.yaml or a schema breaks its own rules; the text says where. The start stops."""


class _Values(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ConnectorFacts(_Values):
    """Who publishes, and within which bounds it works.

    id_prefix: capability ids are this, the endpoint id, a colon and the operation. principal: the manifest's agent.
    default_model: what a chat completion names that names none itself.
    """

    id: str
    profile: str
    system: str
    family: str
    id_prefix: str
    principal: str
    session_id_header: str
    session_key_header: str
    default_model: str
    max_json_response_bytes: _Bytes
    max_stream_response_bytes: _Bytes
    max_sse_frame_bytes: _Bytes
    default_sse_event_limit: _Count
    maximum_sse_event_limit: _Count
    max_request_body_bytes: _Bytes
    max_request_url_bytes: _Bytes


class ApprovalValues(_Values):
    """How every approval is decided. ttl_ms: how long it may stay undecided."""

    selector: Literal["tenant_policy"]
    ttl_ms: _Milliseconds
    evidence: tuple[Literal["reason", "input_snapshot", "policy_decision", "external_ticket", "attachment"], ...]
    distinct_principals: Annotated[int, Field(strict=True, ge=1)]
    requester_must_differ: bool
    operator_must_differ: bool
    allow_self_approval: bool


class CommonValues(_Values):
    """What every row publishes alike.

    required_key_ttl_ms: how long a required key is remembered; an optional one has no end. max_queue_delay_ms: the
    longest wait for a session's lock.
    """

    key_scope: Literal["capability"]
    key_collision: Literal["return_original_result"]
    required_key_ttl_ms: _Milliseconds
    max_queue_delay_ms: _Milliseconds
    availability_target: str
    compensation: Literal["rollback_not_supported"]
    approval: ApprovalValues


class Target(_Values):
    """Something at an endpoint that an approval is about (design D25).

    path: of its GET, with the places of the operation's path. member: of the answer that holds it; None: the answer
    itself. kept, hashed: members of it that the snapshot takes as they are, or as a hash because they are somebody's
    text. compared: those of both that must be unchanged when the approval is used.
    """

    path: str
    member: str | None = None
    kept: tuple[str, ...]
    hashed: tuple[str, ...] = ()
    compared: tuple[str, ...]

    @model_validator(mode="after")
    def _compares_what_it_has(self) -> Self:
        if unknown := sorted(set(self.compared) - {*self.kept, *self.hashed}):
            raise ValueError(f"compared, but neither kept nor hashed: {', '.join(unknown)}")
        return self


class CapabilityFile(_Values):
    """The whole file. operations: in the order in which they are published."""

    connector: ConnectorFacts
    common: CommonValues
    targets: Mapping[str, Target]
    operations: tuple[Operation, ...]


class _Loader(yaml.SafeLoader):
    """Refuses a member that is written twice, where YAML would silently take the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in seen:
                line = key_node.start_mark.line + 1
                raise ContractFileError(f"capabilities.yaml, line {line}: member `{key_node.value}` is written twice")
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def parse_capability_file(text: str) -> CapabilityFile:
    """Read the YAML text.

    Raises: ContractFileError, one line per fault, at most 16.
    """
    try:
        raw = yaml.load(text, Loader=_Loader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise ContractFileError(f"capabilities.yaml is no YAML: {error}") from error
    try:
        found = CapabilityFile.model_validate(raw)
    except ValidationError as error:
        raise ContractFileError("\n".join(_sentence(raw, fault) for fault in error.errors()[:_MAX_FAULTS])) from None
    names = [operation.name for operation in found.operations]
    for name in names:
        if names.count(name) > 1:
            raise ContractFileError(f"capabilities.yaml: row `{name}` is written twice")
    for operation in found.operations:
        if operation.target is not None and operation.target not in found.targets:
            raise ContractFileError(f"capabilities.yaml: row `{operation.name}`, member `target` names no target")
    return found


@cache
def load_capability_file() -> CapabilityFile:
    """Return the installed file, read once per process."""
    return parse_capability_file(contract_folder().joinpath("capabilities.yaml").read_text(encoding="utf-8"))


@cache
def load_operations() -> Mapping[str, Operation]:
    """Return the rows by name, in row order."""
    return MappingProxyType({operation.name: operation for operation in load_capability_file().operations})


def load_target(name: str) -> Target:
    """Return what a row's `target` names."""
    return load_capability_file().targets[name]


def _sentence(raw: Any, fault: Any) -> str:
    place = list(fault["loc"])
    where = "the file"
    if place[:1] == ["operations"] and len(place) > 1:
        row = raw["operations"][place[1]]
        name = row.get("name") if isinstance(row, dict) else None
        where, place = f"row `{name or place[1]}`", place[2:]
    member = ".".join(str(part) for part in place)
    said = {"extra_forbidden": "is unknown", "missing": "is missing"}.get(fault["type"], f": {fault['msg']}")
    if not member:
        return f"capabilities.yaml: {where}{said}"
    return f"capabilities.yaml: {where}, member `{member}` {said}".replace("` :", "`:")
