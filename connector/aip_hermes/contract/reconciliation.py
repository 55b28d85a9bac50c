"""What a look at the provider says about an action whose effect nobody knows (design §5).

A runtime hands over what it kept of the action; a connector reads, never changes anything, and gives a verdict. What a
person does next is one sentence of one table, see `contract.next_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aip_hermes.ids import ActionId, TenantId

__all__ = ["OUTCOMES", "Beside", "Evidence", "Found", "Uncertain", "Verdict", "VerdictOutcome"]

VerdictOutcome = Literal["applied", "not_applied", "partially_applied", "indeterminate"]
"""applied: what was asked for is there. not_applied: it is not, and nothing is on its way any more. partially_applied:
some of it is there, and nothing more is on its way. indeterminate: none of these is proven."""

OUTCOMES: Final[tuple[VerdictOutcome, ...]] = ("indeterminate", "not_applied", "partially_applied", "applied")
"""From the least proven to the most: what was proven once is never taken back."""

Found = Literal["found", "not_found", "not_read"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One read. read: what kind of thing, such as `session`. ids: which. at_ms: Unix milliseconds, before the read.

    facts: ids, times, counts, states and hashes; never text.
    """

    read: str
    ids: Mapping[str, str]
    at_ms: int
    found: Found
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Another action of the same connector and tenant that was sent about then or later.

    facts: as those of `Uncertain`. certain: it took effect, so that what it did is there too; otherwise it may be.
    earlier: it had ended before the action in question was sent, shortly before.
    """

    facts: Mapping[str, Any]
    certain: bool
    earlier: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertain:
    """An action that ended without anybody knowing its effect, as far as it was kept.

    facts: what `prepare` wrote down with the intent. intent_at_ms, settled_at_ms: Unix milliseconds. details: of the
    error that it ended with. beside: other actions whose effects could be taken for this one's.
    """

    action_id: ActionId
    tenant_id: TenantId | None
    facts: Mapping[str, Any]
    intent_at_ms: int
    settled_at_ms: int
    details: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is proven about an uncertain action.

    reason: a code, `[a-z_]+`. explanation: one sentence for a person, without text of a transcript. retry_after_ms:
    when a further look may prove more; None where time alone changes nothing. opens: the serial key of a session in
    which the action's work is seen to be over (design D13). erases: of what no stored text may stay, as in `Traces`
    (design D23).
    """

    outcome: VerdictOutcome
    reason: str
    explanation: str
    evidence: tuple[Evidence, ...] = ()
    retry_after_ms: int | None = None
    opens: str | None = None
    erases: frozenset[str] = frozenset()
