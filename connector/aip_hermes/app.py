"""Composition: settings to a running server. Who opens a thing here closes it here.

Connectors are found through the entry-point group `aip.connectors` and in no other way: this module knows no connector.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Final

import structlog
from starlette.applications import Starlette

from aip_hermes import log, wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector
from aip_hermes.database import AlreadyOwned, Place, SharedPlace, StoreFailure
from aip_hermes.ports import Clock, Faults, NewId, NoFaults, SystemClock, new_id
from aip_hermes.runtime import Authorities, AuthorityFileError, Runtime, RuntimeLimits
from aip_hermes.server import Gateway, TokenTable, native_application
from aip_hermes.server.listening import CannotServe, listen, serve_asgi, signals, stop_signals
from aip_hermes.server.metrics import Metrics, PrometheusMeter
from aip_hermes.settings import Settings, SettingsError
from aip_hermes.telemetry import NoSpans, Spans

__all__ = ["CONNECTOR_GROUP", "CannotServe", "build_app", "connectors_of", "serve"]

CONNECTOR_GROUP: Final = "aip.connectors"

CLOSE_MS: Final = 1200
"""How long actions may run on after the drain of requests (2 s). The runtime may need 1.5 s more to cut off what still
runs and to settle; together that stays below five seconds."""

logger = structlog.get_logger()


def build_app(
    settings: Settings, *, clock: Clock | None = None, new_id: NewId = new_id, faults: Faults | None = None
) -> Starlette:
    """Return the ASGI application; its lifespan opens and closes runtime, connectors and the data directory's lock.

    `app.state.gateway` is the server's `Gateway`. Raises SettingsError for token files that can't be used.
    """
    wire.build_models()
    clock, faults = clock or SystemClock(), faults or NoFaults()
    tokens = TokenTable.of(settings, clock=clock)
    gateway = Gateway(settings=settings, tokens=tokens, clock=clock, new_id=new_id)
    metrics, spans = Metrics(gateway), _spans(settings)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            connectors = connectors_of(settings, clock=clock, new_id=new_id, faults=faults)
            for connector in connectors:
                stack.push_async_callback(connector.aclose)
            catalog = Catalog(offer for connector in connectors for offer in connector.offers())
            meter = PrometheusMeter(catalog.operations())
            runtime = await Runtime.open(
                store=_store_place(settings),
                catalog=catalog,
                connectors=connectors,
                authorities=_authorities(settings, clock=clock),
                clock=clock,
                new_id=new_id,
                faults=faults,
                limits=_limits(settings),
                meter=meter,
                spans=spans,
                approval_waits=_notifying(settings, stack, clock=clock, new_id=new_id),
            )
            stack.push_async_callback(runtime.aclose)
            gateway.open(runtime, catalog)
            metrics.open(meter, runtime.load)
            stack.callback(gateway.close)
            _warn_of_orphans(settings, tokens)
            yield

    application = native_application(gateway, lifespan=lifespan, metrics=metrics)
    application.state.gateway = gateway
    return application


async def serve(
    settings: Settings,
    *,
    on_ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
    clock: Clock | None = None,
    new_id: NewId = new_id,
    faults: Faults | None = None,
    advice: str | None = None,
) -> None:
    """Serve until `stop` is set, or until SIGTERM or SIGINT where no event is given; ends within five seconds.

    on_ready: called once, with the base URL that was bound. advice: what to do where the port is in use; None: as
    for a file. SIGHUP reads tokens again (design D24).
    Raises SettingsError, CannotServe.
    """
    if not structlog.is_configured():
        log.configure()
    application = build_app(settings, clock=clock, new_id=new_id, faults=faults)
    gateway: Gateway = application.state.gateway
    ending = stop or asyncio.Event()
    async with AsyncExitStack() as stack:
        advice = advice or (
            f"stop what uses it, or write another `port` under [server] in {settings.path} (0 picks a free one)"
        )
        listener = stack.enter_context(closing(listen(settings.server.host, settings.server.port, advice=advice)))
        stack.enter_context(signals({signal.SIGHUP: lambda: _reload(settings, gateway)}))
        if stop is None:
            stack.enter_context(stop_signals(ending))
        try:
            await stack.enter_async_context(application.router.lifespan_context(application))
        except (AlreadyOwned, AuthorityFileError, StoreFailure) as exc:
            raise CannotServe(str(exc)) from exc
        await serve_asgi(application, listener, stop=ending, on_ready=on_ready, unreadable=gateway.replies.unreadable)


def connectors_of(settings: Settings, *, clock: Clock, new_id: NewId, faults: Faults) -> list[Connector]:
    """Return every installed connector, built for these settings; the caller closes them. Raises CannotServe."""
    found = sorted(entry_points(group=CONNECTOR_GROUP), key=lambda point: point.name)
    if not found:
        raise CannotServe(
            f"no connector is installed (entry points `{CONNECTOR_GROUP}`); run `pip install aip-hermes-connector`, "
            "or `pip install -e .` in a checkout"
        )
    return [point.load()(settings, clock=clock, new_id=new_id, faults=faults) for point in found]


def _spans(settings: Settings) -> Spans:
    """Return who follows actions; what that needs is imported only where it is wanted. Raises CannotServe."""
    if not settings.tracing:
        return NoSpans()
    try:
        from aip_hermes.server.tracing import OtelSpans
    except ImportError:
        raise CannotServe(
            f"{settings.path}: `tracing.enabled` needs OpenTelemetry; "
            'run `pip install "aip-hermes-connector[otel]"`, or write `enabled = false`'
        ) from None
    return OtelSpans()


def _notifying(
    settings: Settings, stack: AsyncExitStack, *, clock: Clock, new_id: NewId
) -> Callable[[Mapping[str, Any]], None] | None:
    """Return who is told that an approval waits; closed after the runtime. None where the settings name nobody."""
    if settings.notify is None:
        return None
    from aip_hermes.server.notify import Notifier

    notifier = Notifier(settings.notify, clock=clock, new_id=new_id)
    notifier.open()
    stack.push_async_callback(notifier.aclose)
    return notifier.approval_waits


def _limits(settings: Settings) -> RuntimeLimits:
    limits = settings.limits
    return RuntimeLimits(
        close_wait_ms=CLOSE_MS,
        transcripts_ms=settings.retention.transcripts_ms,
        max_running=limits.max_running,
        max_running_per_tenant=limits.max_running_per_tenant,
        max_queued=limits.max_queued,
        max_queued_per_tenant=limits.max_queued_per_tenant,
        max_waiting=limits.max_waiting,
        max_waiting_per_tenant=limits.max_waiting_per_tenant,
    )


def _store_place(settings: Settings) -> Place:
    """Return where the store is; the folder of a file is made, for its owner alone, where it is missing."""
    place = settings.store.place
    if isinstance(place, SharedPlace):
        return place
    folder = place.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        reason = (exc.strerror or "refused").lower()
        raise CannotServe(
            f"{settings.path}: `store.dsn` needs the folder {folder}: {reason}; name another one"
        ) from None
    return place


def _authorities(settings: Settings, *, clock: Clock) -> Authorities:
    """Return who may decide approvals; without a file nobody, and the log says so."""
    if settings.authority_file is None:
        logger.warning("approvals.nobody_may_decide", member="approvals.authority_file")
        return Authorities()
    return Authorities.load(settings.authority_file, clock=clock)


def _reload(settings: Settings, gateway: Gateway) -> None:
    """Read the settings file and its token files again; on any fault the present tokens stay.

    Only tokens follow the file: where the server listens, and so how strong they must be, is what it started with.
    """
    try:
        gateway.tokens.reload(replace(Settings.load(settings.path), server=settings.server))
    except SettingsError as exc:
        logger.error("tokens.reload_refused", reason=str(exc))
    else:
        logger.info("tokens.reloaded", tokens=len(gateway.tokens))


def _warn_of_orphans(settings: Settings, tokens: TokenTable) -> None:
    for endpoint in settings.endpoints:
        if endpoint.tenant_id is not None and endpoint.tenant_id not in tokens.tenants:
            logger.warning("endpoint.without_token", endpoint_id=endpoint.id, tenant_id=endpoint.tenant_id)
