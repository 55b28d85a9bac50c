"""The evidence of one verification: a document that holds ids, hashes, statuses, counts and times, and no other text.

What a point did, claims and gives as its reason are sentences of this program. What it saw is a scalar, or a text of
the few characters that ids and codes have; everything else is kept as its hash (design D19). Source: issue 5.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

from aip_hermes import wire

__all__ = [
    "KIND",
    "MARK_PATTERN",
    "Cleaned",
    "Deployment",
    "Document",
    "PointEvidence",
    "Program",
    "digest_of",
    "sealed",
    "verdict_of",
]

KIND: Final = "aip-hermes.verification/v1"

MARK_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.:+\-]{0,159}"
"""What ids, codes, versions and hashes look like; a text with a blank is none."""

_HASH: Final = r"^sha256:[0-9a-f]{64}$"

Mark = Annotated[str, StringConstraints(pattern=rf"^{MARK_PATTERN}$")]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00-\x1f\x7f]*$")]
Digest = Annotated[str, StringConstraints(pattern=_HASH)]
Instant = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$")]
Origin = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@?#<>]{1,300}$")]
Outcome = Literal["pass", "fail", "not_applicable"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Program(_Part):
    """What verified. code_sha256: over the installed package. revision: as the caller names it."""

    distribution: Mark
    version: Mark
    code_sha256: Digest
    revision: Mark | None = None


class Deployment(_Part):
    """What was verified, as far as it says who it is; None where it did not answer. contracts: digest by operation."""

    origin: Origin
    service: Mark | None = None
    protocol_version: Mark | None = None
    manifest_sha256: Digest | None = None
    catalog_revision: StrictInt | None = None
    principal_id: Mark | None = None
    tenant_id: Mark | None = None
    reviewer_id: Mark | None = None
    endpoint: Mark
    provider: Mark | None = None
    provider_version: Mark | None = None
    contracts: dict[Mark, Mark | None] = Field(default_factory=dict)


class PointEvidence(_Part):
    """One point. done: what was asked, in order. held: the claims that reads confirmed. reason: None only of a pass."""

    number: StrictInt
    id: Mark
    sentence: Sentence
    outcome: Outcome
    reason: Sentence | None
    done: tuple[Sentence, ...]
    held: tuple[Sentence, ...]
    seen: dict[Mark, Mark | StrictBool | StrictInt | None]
    quirks: tuple[Mark, ...]
    started_at: Instant
    ended_at: Instant


class Cleaned(_Part):
    """What became of one session of the verification. reason: a code, why it is left."""

    session_id: Mark
    outcome: Literal["deleted", "left", "never_made"]
    reason: Mark | None = None


class Document(_Part):
    """The whole. sha256: over the canonical JSON of everything but this member."""

    kind: Literal["aip-hermes.verification/v1"] = KIND
    run: Mark
    verdict: Literal["pass", "fail"]
    started_at: Instant
    ended_at: Instant
    program: Program
    deployment: Deployment
    points: tuple[PointEvidence, ...]
    quirks: tuple[Mark, ...]
    cleanup: tuple[Cleaned, ...]
    sha256: Digest

    def json_value(self) -> dict[str, Any]:
        """Return it as JSON."""
        return self.model_dump(mode="json")


def sealed(
    *,
    run: str,
    started_at: str,
    ended_at: str,
    program: Program,
    deployment: Deployment,
    points: tuple[PointEvidence, ...],
    cleanup: tuple[Cleaned, ...],
) -> Document:
    """Return the document with the verdict that follows from its points, and its hash."""
    open_one = Document(
        run=run,
        verdict=verdict_of(points),
        started_at=started_at,
        ended_at=ended_at,
        program=program,
        deployment=deployment,
        points=points,
        quirks=tuple(sorted({quirk for point in points for quirk in point.quirks})),
        cleanup=cleanup,
        sha256="sha256:" + "0" * 64,
    )
    return open_one.model_copy(update={"sha256": digest_of(open_one.json_value())})


def verdict_of(points: tuple[PointEvidence, ...]) -> Literal["pass", "fail"]:
    """Return `fail` where one point failed. Points that do not apply fail nothing."""
    return "fail" if any(point.outcome == "fail" for point in points) else "pass"


def digest_of(document: dict[str, Any]) -> str:
    """Return `sha256:<hex>` over the canonical JSON of a document without its own hash."""
    return "sha256:" + wire.sha256_hex({name: value for name, value in document.items() if name != "sha256"})
