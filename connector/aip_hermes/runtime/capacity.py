"""How much the runtime takes on at a time: what runs, what waits in the queue, what waits for a decision.

Who comes when a limit is reached is refused before anything is stored, with a time after which a new try may succeed;
repeats of what was taken on are answered all the same. What runs is counted in this process, reads included; what waits
is counted in the store, inside the transaction that claims, with those of this process whose target is being read
before they wait for a decision.
Source: runtime behaviour §19, §20; the issue on a runtime that never lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final, Literal

from aip_hermes.database import Connection
from aip_hermes.runtime.failures import AtCapacity
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES
from aip_hermes.runtime.submission import Submission

__all__ = ["Capacity", "Place"]

Kind = Literal["running", "queued", "waiting"]

_COUNTS: Final[Mapping[Kind, str]] = {"queued": "count_queued", "waiting": "count_pending"}
_RETRY_AFTER_MS: Final[Mapping[Kind, int]] = {"running": 1_000, "queued": 5_000, "waiting": 60_000}


class Place:
    """Room for one submission. Only who runs or waits has it: not who is answered with what another one does."""

    def __init__(self, capacity: Capacity, submission: Submission) -> None:
        self._capacity = capacity
        self._submission = submission
        self._taken = False
        self._left = False

    def take(self, connection: Connection | None = None) -> None:
        """Have it, until the submission ends here or waits durably.

        connection: of the transaction that claims, which ends with a refusal; a safe read claims nothing before it ran.
        Raises: AtCapacity.
        """
        with self._capacity.lock:
            # Whoever asked has gone while the transaction waited; nobody would give the place back.
            self._taken = not self._left and self._capacity.enter(self._submission, connection)

    def waits(self) -> None:
        """Leave it to the store to count it, from inside the transaction that parks it."""
        with self._capacity.lock:
            self._give_back()

    def leave(self) -> None:
        """Give it back, whether it was taken or not."""
        with self._capacity.lock:
            self._left = True
            self._give_back()

    def _give_back(self) -> None:
        if self._taken:
            self._taken = False
            self._capacity.leave(self._submission)


class Capacity:
    """The places of one runtime. lock: claims take them in the store's thread."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing
        self._running: Counter[str] = Counter()
        self._asking: Counter[str] = Counter()
        self.lock = Lock()

    @contextmanager
    def place(self, submission: Submission) -> Iterator[Place]:
        """Yield the place of a submission, not yet taken."""
        place = Place(self, submission)
        try:
            yield place
        finally:
            place.leave()

    def enter(self, submission: Submission, connection: Connection | None) -> bool:
        """Count a submission, under the lock; False for one that the store counts. Raises: AtCapacity."""
        kind, limits, tenant = _kind(submission), self._footing.limits, submission.tenant
        if kind == "running":
            self._refuse_at(self._running[tenant], limits.max_running_per_tenant, kind, own=True)
            self._refuse_at(self._running.total(), limits.max_running, kind, own=False)
            self._running[tenant] += 1
            return True
        assert connection is not None  # noqa: S101 - who waits is claimed first
        self._check_waiting(connection, kind, tenant)
        if kind == "queued":
            return False
        self._asking[tenant] += 1
        return True

    def leave(self, submission: Submission) -> None:
        """Count it no longer, under the lock."""
        counted = self._running if _kind(submission) == "running" else self._asking
        counted[submission.tenant] -= 1
        if not counted[submission.tenant]:
            del counted[submission.tenant]

    def _check_waiting(self, connection: Connection, kind: Kind, tenant: str) -> None:
        """Refuse a claim for which there is no place to wait."""
        limits = self._footing.limits
        if kind == "queued":
            most, own, asking = limits.max_queued, limits.max_queued_per_tenant, Counter[str]()
        else:
            most, own, asking = limits.max_waiting, limits.max_waiting_per_tenant, self._asking
        mine = _stored(connection, kind, of=tenant, most=own) + asking[tenant]
        self._refuse_at(mine, own, kind, own=True)
        everybodys = _stored(connection, kind, of=None, most=most) + asking.total()
        self._refuse_at(everybodys, most, kind, own=False)

    def _refuse_at(self, taken: int, most: int, kind: Kind, *, own: bool) -> None:
        if taken < most:
            return
        whose = "your tenant's actions" if own else "actions"
        raise AtCapacity(
            f"as many {whose} are {kind} as this server takes on; nothing was stored: send the same action again later",
            details={"limit": f"max_{kind}{'_per_tenant' if own else ''}", "maximum": most},
            retry_after_ms=_RETRY_AFTER_MS[kind],
        )


def _stored(connection: Connection, kind: Kind, *, of: str | None, most: int) -> int:
    (found,) = connection.execute(QUERIES[_COUNTS[kind]], {"tenant": of, "most": most})
    return int(found["waiting"])


def _kind(submission: Submission) -> Kind:
    if submission.approval_policy is not None:
        return "waiting"
    return "queued" if submission.action.mode == "async" else "running"
