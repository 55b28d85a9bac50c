"""What the points of a verification share: two principals, one set of identities, and what a point writes down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.checklist.document import MARK_PATTERN
from aip_hermes.client.failures import PeerError
from aip_hermes.client.hermes_objects import Session
from aip_hermes.client.lifecycle.reading import SessionReads
from aip_hermes.client.lifecycle.session_lifecycle import SessionLifecycle
from aip_hermes.client.lifecycle.states import (
    ClosedSession,
    DeleteRequested,
    Discovered,
    LifecyclePolicy,
    OpenSession,
    VerifiedTurn,
)
from aip_hermes.client.results import CallResult
from aip_hermes.ids import ActionId, EndpointId, HermesSessionId, HermesSessionKey, IdempotencyKey
from aip_hermes.ports import NewId

__all__ = ["Case", "DoesNotApply", "NotAsWanted", "Point", "hashed", "marked"]

_MARK: Final = re.compile(MARK_PATTERN)
_POLICY: Final = LifecyclePolicy()


class NotAsWanted(Exception):
    """A claim did not hold. The text is the claim; what was seen instead stands in `seen`."""


class DoesNotApply(Exception):
    """A point can't be played here. The text says why."""


@dataclass(kw_only=True)
class Point:
    """What one point writes down while it is played."""

    done: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    seen: dict[str, str | int | bool | None] = field(default_factory=dict)
    quirks: list[str] = field(default_factory=list)

    def did(self, *what: str) -> None:
        """Note what was asked."""
        self.done += what

    def saw(self, **facts: str | int | bool | None) -> None:
        """Note facts: counts, answers to yes or no, ids and codes; a text that is none of these becomes its hash."""
        for name, fact in facts.items():
            self.seen[name] = marked(fact) if isinstance(fact, str) else fact

    def saw_hash(self, **values: Any) -> None:
        """Note the hashes of JSON values."""
        self.seen |= {f"{name}_sha256": hashed(value) for name, value in values.items()}

    def check(self, claim: str, held: bool) -> None:
        """Note a claim that held. Raises NotAsWanted where it did not."""
        if not held:
            raise NotAsWanted(claim)
        self.held.append(claim)


class Case:
    """One verification. requester: with a store of identities. reviewer: another principal of the tenant, or None."""

    def __init__(
        self,
        *,
        requester: AipClient,
        reviewer: AipClient | None,
        endpoint: EndpointId,
        run: str,
        new_id: NewId,
        policy: LifecyclePolicy = _POLICY,
    ) -> None:
        self.requester = requester
        self.reviewer = reviewer
        self.endpoint = endpoint
        self.policy = policy
        self.new_id = new_id
        self.life = SessionLifecycle(requester, name=f"verify-{run}", endpoint=endpoint, policy=policy)
        self.reads = SessionReads(requester.call, endpoint=endpoint, page_size=policy.page_size, rounds=policy.rounds)
        self.source_id = HermesSessionId(f"verify-{run}")
        self.child_id = HermesSessionId(f"verify-{run}-fork")
        self.other_id = HermesSessionId(f"verify-{run}-other")
        self.half_id = HermesSessionId(f"verify-{run}-half")
        self.session_key = HermesSessionKey(f"verify-memory-{run}")
        self.title = f"Checked by aip-hermes {run}"
        self.question = f"This is a check of the deployment, run {run}. Answer in one short sentence."
        self.may_exist: set[HermesSessionId] = set()
        """Sessions that were asked for; the others were never made."""
        self.discovered: Discovered | None = None
        self.source: OpenSession | ClosedSession | None = None
        self.child: OpenSession | ClosedSession | None = None
        self.turn: VerifiedTurn | None = None
        self.delete: DeleteRequested | None = None

    @property
    def sessions(self) -> tuple[HermesSessionId, ...]:
        """Every session that the points may make, children first."""
        return (self.half_id, self.child_id, self.other_id, self.source_id)

    @property
    def open_source(self) -> OpenSession:
        """The source while it takes turns."""
        assert isinstance(self.source, OpenSession)  # noqa: S101 - the table says which point comes first
        return self.source

    @property
    def open_child(self) -> OpenSession:
        """The child while it takes turns."""
        assert isinstance(self.child, OpenSession)  # noqa: S101 - the table says which point comes first
        return self.child

    async def took_effect(self, point: Point, result: CallResult) -> bool:
        """Whether an action completed; where its answer was lost, whether the server finds that it was carried out."""
        if result.outcome != "uncertain":
            return result.outcome == "completed"
        point.did(f"had the server reconcile {result.action_id}, whose answer was lost")
        verdict = await self.requester.reconcile(result.action_id)
        point.saw(lost_answer_verdict=verdict.verdict, lost_answer_reason=verdict.reason)
        return verdict.verdict == "applied"

    async def call(
        self, point: Point, operation: str, input: Mapping[str, Any], *, key: IdempotencyKey | None = None
    ) -> CallResult:
        """Call an operation of the endpoint under a new Action ID, and note it."""
        action_id = ActionId(self.new_id("act_"))
        point.did(f"called {operation} as {action_id}")
        return await self.requester.call(
            self.reads.capability(operation), dict(input), action_id=action_id, idempotency_key=key
        )

    async def code_of(self, point: Point, operation: str, input: Mapping[str, Any]) -> str | None:
        """Call what is to be refused; return the code of the refusal, or None where there was none."""
        try:
            result = await self.call(point, operation, input)
        except PeerError as refused:
            return refused.code
        return None if result.error is None else result.error.code

    async def row(self, point: Point, session_id: HermesSessionId) -> Session:
        """Read the exact row."""
        point.did(f"read the row {session_id}")
        return await self.reads.get(session_id)


def hashed(value: Any) -> str:
    """Return `sha256:<hex>` over the canonical JSON of a value."""
    return f"sha256:{wire.sha256_hex(value)}"


def marked(text: str) -> str:
    """Return a text that looks like an id or a code as it is, and the hash of every other one."""
    return text if _MARK.fullmatch(text) else hashed(text)
