"""How much the runtime takes on at a time: what runs, what waits in the queue, what waits for a decision.

Who comes when a limit is reached is refused before anything is stored, with a time after which a new try may succeed;
repeats of what was taken on are answered all the same. What runs is counted in this process, reads included; what waits
is counted in the store, inside the transaction that claims, with those of this process that are on their way there.
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

    def leave(self) -> None:
        """Give it back, whether it was taken or not."""
        with self._capacity.lock:
            self._left = True
            if self._taken:
                self._capacity.leave(self._submission)


class Capacity:
    """The places of one runtime. lock: claims take them in the store's thread."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing
        self._running: Counter[str] = Counter()
        self._entering: dict[tuple[str, str], Kind] = {}
        self.lock = Lock()

    @contextmanager
    def place(self, submission: Submission) -> Iterator[Place]:
        """Yield the place of a submission, not yet taken."""
        kind, address = _kind(submission), (submission.tenant, submission.action.id)
        place = Place(self, submission)
        if kind != "running":
            self._entering[address] = kind
        try:
            yield place
        finally:
            self._entering.pop(address, None)
            place.leave()

    def enter(self, submission: Submission, connection: Connection | None) -> bool:
        """Count a submission that runs, under the lock; who will wait is counted by the store. Raises: AtCapacity."""
        kind, limits, tenant = _kind(submission), self._footing.limits, submission.tenant
        if kind != "running":
            assert connection is not None  # noqa: S101 - who waits is claimed first
            self._check_waiting(connection, kind, submission)
            return False
        self._refuse_at(self._running[tenant], limits.max_running_per_tenant, kind, own=True)
        self._refuse_at(self._running.total(), limits.max_running, kind, own=False)
        self._running[tenant] += 1
        return True

    def leave(self, submission: Submission) -> None:
        """Count one that ran no longer, under the lock."""
        self._running[submission.tenant] -= 1
        if not self._running[submission.tenant]:
            del self._running[submission.tenant]

    def _check_waiting(self, connection: Connection, kind: Kind, submission: Submission) -> None:
        """Refuse a claim for which there is no place to wait."""
        limits = self._footing.limits
        if kind == "queued":
            most, own = limits.max_queued, limits.max_queued_per_tenant
        else:
            most, own = limits.max_waiting, limits.max_waiting_per_tenant
        self._refuse_at(
            self._waiting(connection, kind, submission, of=submission.tenant, most=own), own, kind, own=True
        )
        self._refuse_at(self._waiting(connection, kind, submission, of=None, most=most), most, kind, own=False)

    def _waiting(self, connection: Connection, kind: Kind, submission: Submission, *, of: str | None, most: int) -> int:
        (found,) = connection.execute(QUERIES[_COUNTS[kind]], {"tenant": of, "most": most})
        on_their_way = 0
        for (tenant, action_id), entering in list(self._entering.items()):
            if entering != kind or of not in (None, tenant) or action_id == submission.action.id:
                continue
            rows = connection.execute(QUERIES["fetch_action"], {"tenant": tenant, "action_id": action_id})
            on_their_way += sum(row["state"] == "running" for row in rows)
        return int(found["waiting"]) + on_their_way

    def _refuse_at(self, taken: int, most: int, kind: Kind, *, own: bool) -> None:
        if taken < most:
            return
        whose = "your tenant's actions" if own else "actions"
        raise AtCapacity(
            f"as many {whose} are {kind} as this server takes on; nothing was stored: send the same action again later",
            details={"limit": f"max_{kind}{'_per_tenant' if own else ''}", "maximum": most},
            retry_after_ms=_RETRY_AFTER_MS[kind],
        )


def _kind(submission: Submission) -> Kind:
    if submission.approval_policy is not None:
        return "waiting"
    return "queued" if submission.action.mode == "async" else "running"
