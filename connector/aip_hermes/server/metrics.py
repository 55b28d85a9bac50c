"""`GET /metrics`: what the server counted since it started, and how full its store is now, as Prometheus text.

A token with `metrics:read` sees its own tenant, one with `metrics:read:any` the whole server. So every count is kept
twice, per tenant and over all, and neither carries a tenant or an endpoint as a label: nobody learns from his own
figures that there are others. Label values come from closed sets; an operation that no row names is `other`.
Source: design D24; issue "a runtime that never lies", operations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.contract.reconciliation import OUTCOMES
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.failures import NotAuthorized, RuntimeStopping
from aip_hermes.runtime.figures import Load
from aip_hermes.server.gateway import Gateway
from aip_hermes.telemetry import FenceHit

__all__ = ["CONTENT_TYPE", "SCOPE", "Metrics", "PrometheusMeter"]

SCOPE: Final = "metrics:read"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"

_STATUSES: Final = frozenset(("completed", "failed", "cancelled", "requires_human"))
_BUCKETS: Final = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
"""Seconds: a read on this machine to a long turn."""


class _Families:
    """The counters of one tenant, or of all."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.actions = Counter(
            "aip_actions", "Actions that ended, by operation and status.", ("operation", "status"),
            registry=self.registry,
        )  # fmt: skip
        self.uncertain = Counter(
            "aip_actions_uncertain", "Actions that ended with an outcome that nobody knows.", ("operation",),
            registry=self.registry,
        )  # fmt: skip
        self.fence = Counter(
            "aip_fence_hits", "Submissions that met their own Action ID or key.", ("operation", "kind"),
            registry=self.registry,
        )  # fmt: skip
        self.reconciliations = Counter(
            "aip_reconciliations", "Looks at what became of uncertain actions, by verdict.", ("operation", "verdict"),
            registry=self.registry,
        )  # fmt: skip
        self.provider = Histogram(
            "aip_provider_seconds", "Time until a provider answered, or was given up.", ("operation",),
            buckets=_BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.queued = Gauge("aip_queue_depth", "Actions that wait in the queue.", registry=self.registry)
        self.running = Gauge("aip_actions_running", "Actions that run.", registry=self.registry)
        self.pending = Gauge("aip_approvals_pending", "Approvals that wait for a decision.", registry=self.registry)

    def text(self, load: Load) -> bytes:
        self.queued.set(load.queued)
        self.running.set(load.running)
        self.pending.set(load.pending)
        return generate_latest(self.registry)


class PrometheusMeter:
    """The process's counts. operations: the only values of that label, besides `other`. Registries of its own."""

    def __init__(self, operations: Collection[str]) -> None:
        self._operations = frozenset(operations)
        self._all = _Families()
        self._of: dict[str, _Families] = {}

    def ended(self, *, tenant: str, operation: str, status: str, uncertain: bool) -> None:
        name, told = self._known(operation), status if status in _STATUSES else OTHER
        for families in self._both(tenant):
            families.actions.labels(name, told).inc()
            if uncertain:
                families.uncertain.labels(name).inc()

    def fence_hit(self, *, tenant: str, operation: str, kind: FenceHit) -> None:
        for families in self._both(tenant):
            families.fence.labels(self._known(operation), kind).inc()

    def reconciled(self, *, tenant: str, operation: str, outcome: str) -> None:
        told = outcome if outcome in OUTCOMES else OTHER
        for families in self._both(tenant):
            families.reconciliations.labels(self._known(operation), told).inc()

    def provider_took(self, *, tenant: str, operation: str, seconds: float) -> None:
        for families in self._both(tenant):
            families.provider.labels(self._known(operation)).observe(seconds)

    def text(self, tenant: str | None, load: Load) -> bytes:
        """Return the exposition of one tenant (empty: those without one), or of all for None."""
        return (self._all if tenant is None else self._families(tenant)).text(load)

    def _both(self, tenant: str) -> tuple[_Families, _Families]:
        return self._all, self._families(tenant)

    def _families(self, tenant: str) -> _Families:
        # Tenants are those of the token table: a caller makes none up.
        found = self._of.get(tenant)
        if found is None:
            found = self._of[tenant] = _Families()
        return found

    def _known(self, operation: str) -> str:
        return operation if operation in self._operations else OTHER


ReadLoad = Callable[[str | None], Awaitable[Load]]
"""Counts what is unfinished, of one tenant (empty: of none) or of all for None."""


class Metrics:
    """The route; it refuses until `open`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._open: tuple[PrometheusMeter, ReadLoad] | None = None

    def open(self, meter: PrometheusMeter, load: ReadLoad) -> None:
        """Let requests in."""
        self._open = meter, load

    async def metrics(self, request: Request) -> Response:
        """Return the exposition that the token may see. Raises: BearerRefused, NotAuthorized, RuntimeStopping."""
        caller = self._gateway.authenticate(request)
        tenant = _scope_of(caller)
        if self._open is None:
            raise RuntimeStopping("the server is starting; ask again later", retry_after_ms=1000)
        meter, load = self._open
        return Response(
            meter.text(tenant, await load(tenant)), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"}
        )


def _scope_of(caller: Caller) -> str | None:
    """Return the tenant whose figures the caller may see, None for all of them."""
    if not caller.scopes.isdisjoint((f"{SCOPE}:any", "*")):
        return None
    if not caller.may(SCOPE):
        raise NotAuthorized(
            f"the figures need a token with the scope `{SCOPE}`, or `{SCOPE}:any` for every tenant's",
            details={"code": "metrics.scope_missing"},
        )
    return str(caller.tenant_id or "")
