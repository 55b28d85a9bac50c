"""What a user's type checker says about the public names. Checked by mypy, never run.

A wrong use carries the error that it must get: an ignore that nothing needs is an error too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, assert_type

from starlette.applications import Starlette

from aip_hermes import (
    ActionId,
    AipClient,
    AipConnection,
    AipError,
    ApprovalId,
    Authorities,
    Caller,
    CallFailed,
    CallIdentities,
    CallRecord,
    CallResult,
    CannotServe,
    CapabilityId,
    Catalog,
    ClientFailure,
    Connector,
    Endpoint,
    HermesClient,
    HermesConnector,
    HermesRefused,
    HermesSessionId,
    HermesSessionKey,
    IdempotencyKey,
    IdentityError,
    IdentityStore,
    LifecycleError,
    LifecyclePolicy,
    MessageContext,
    NoAnswer,
    NotReachable,
    PeerError,
    Reply,
    Resumed,
    Runtime,
    RuntimeLimits,
    Secret,
    SessionDB,
    SessionLifecycle,
    Settings,
    SettingsError,
    SqliteIdentityStore,
    StoreFailure,
    __version__,
    build_app,
    load_token,
    new_id,
    wire,
)
from aip_hermes.client import Deleted, Me, Session, SessionListing, Transcript, Turn
from aip_hermes.client.lifecycle import (
    ClosedSession,
    DeleteConfirmed,
    DeleteDecided,
    DeleteRequested,
    OpenSession,
    SessionClosed,
    VerifiedTurn,
)
from aip_hermes.contract.handler import Offer
from aip_hermes.ids import AipSessionId, EndpointId


def identities(action: ActionId, key: IdempotencyKey, session: HermesSessionId, scope: HermesSessionKey) -> None:
    assert_type(ActionId("act_1"), ActionId)
    plain: str = action  # an identity is its string
    action = key  # type: ignore[assignment]
    action = session  # type: ignore[assignment]
    key = action  # type: ignore[assignment]
    key = scope  # type: ignore[assignment]
    session = scope  # type: ignore[assignment]
    session = AipSessionId("sess_1")  # type: ignore[assignment]
    scope = session  # type: ignore[assignment]
    session = plain  # type: ignore[assignment]
    ActionId(1)  # type: ignore[arg-type]


async def client(action: ActionId, key: IdempotencyKey, capability: CapabilityId, approval: ApprovalId) -> None:
    token = load_token(file=Path("token"))
    assert_type(token, Secret | None)
    async with AipConnection(base_url="http://127.0.0.1:8080", token=token) as aip:
        assert_type(aip, AipConnection)
        reply = await aip.call(capability, {"limit": 5}, action_id=action, idempotency_key=key)
        assert_type(reply, Reply)
        assert_type(reply.result, dict[str, Any] | None)
        assert_type(
            reply.outcome, Literal["completed", "pending", "cancelled", "failed", "connector_failed", "uncertain"]
        )
        assert_type(await aip.result(action), dict[str, Any])
        assert_type(await aip.approval(approval), dict[str, Any])

        await aip.call(capability, {}, action_id=key)  # type: ignore[arg-type]
        await aip.call(capability, {}, action_id="act_1")  # type: ignore[arg-type]
        await aip.call(capability, {}, action_id=action, idempotency_key=action)  # type: ignore[arg-type]
        await aip.call(action, {}, action_id=action)  # type: ignore[arg-type]
        await aip.call(capability, {})  # type: ignore[call-arg]
        await aip.call(capability, {}, action, key)  # type: ignore[call-arg]
        await aip.call(capability, {}, action_id=action, mode="later")  # type: ignore[arg-type]
        await aip.result(approval)  # type: ignore[arg-type]
        await aip.approval(action)  # type: ignore[arg-type]
        await aip.status(action, include_results=True)  # type: ignore[call-arg]
        await aip.approvals(status="open")  # type: ignore[arg-type]
    AipConnection("http://127.0.0.1:8080")  # type: ignore[call-arg]
    AipConnection(base_url="http://127.0.0.1:8080", token="plain")  # type: ignore[arg-type]


async def application(
    action: ActionId, key: IdempotencyKey, capability: CapabilityId, session: HermesSessionId, scope: HermesSessionKey
) -> None:
    async with (
        SqliteIdentityStore("identities.db") as store,
        AipClient(base_url="http://127.0.0.1:8080", token_file="token", store=store) as aip,
    ):
        kept: IdentityStore = store
        assert_type(await kept.open_calls(), Sequence[CallRecord])
        assert_type(aip, AipClient)
        assert_type(await aip.me(), Me)
        result = await aip.call(capability, {"message": "hi"}, session_id=session, session_key=scope)
        assert_type(result, CallResult)
        assert_type(result.identities, CallIdentities)
        assert_type(result.identities.session_id, HermesSessionId | None)
        assert_type(await aip.result(action), CallResult)
        for record in await aip.open_calls():
            assert_type(await aip.resume(record), Resumed)

        await aip.call(capability, {}, action_id=key)  # type: ignore[arg-type]
        await aip.call(capability, {}, session_id=scope)  # type: ignore[arg-type]
        await aip.call(capability, {}, session_key=session)  # type: ignore[arg-type]
        await aip.call(capability, {}, idempotency_key="k")  # type: ignore[arg-type]
        await aip.call(capability, {}, action, key)  # type: ignore[call-arg]
    AipClient(base_url="http://127.0.0.1:8080", token="plain")  # type: ignore[arg-type]


async def endpoint(session: HermesSessionId, child: HermesSessionId, scope: HermesSessionKey) -> None:
    async with HermesClient(base_url="http://127.0.0.1:8642", key_file="hermes.key") as hermes:
        assert_type(await hermes.create(session_id=session, title="A case"), Session)
        assert_type(await hermes.find(session_id=session), Session | None)
        assert_type(await hermes.list_all(), SessionListing)
        assert_type(await hermes.chat("hi", session_id=session, session_key=scope), Turn)
        assert_type(await hermes.messages(session_id=session), Transcript)
        assert_type(await hermes.fork(session_id=session, new_session_id=child), Session)
        assert_type(await hermes.delete(session_id=session), Deleted)
        await hermes.get(session)  # type: ignore[call-arg]
        await hermes.get(session_id=scope)  # type: ignore[arg-type]
        await hermes.get(session_id="plain")  # type: ignore[arg-type]
        await hermes.fork(session_id=session)  # type: ignore[call-arg]


def refusals(refused: HermesRefused, unfinished: CallFailed) -> None:
    failed: ClientFailure = refused
    failed = unfinished
    assert_type(failed.identities, CallIdentities | None)
    assert_type(refused.hermes_code, str | None)
    assert_type(unfinished.result, CallResult)


def failures(lost: NoAnswer, away: NotReachable, told: PeerError, odd: IdentityError) -> None:
    failed: ClientFailure = lost
    failed = away
    failed = told
    ours: AipError = failed
    ours = odd  # type: ignore[assignment]
    assert_type(ours.uncertain, bool)
    assert_type(told.code, str)


async def lifecycle(client: AipClient, session_id: HermesSessionId, closed: ClosedSession) -> None:
    life = SessionLifecycle(client, name="case", policy=LifecyclePolicy(turns_after_close="allow"))
    opened = await life.create(session_id)
    assert_type(opened, OpenSession)
    assert_type(await life.chat(opened, "hello", step="first"), VerifiedTurn)
    assert_type(await life.close(opened, reason="done"), ClosedSession)
    await life.chat(closed, "hello", step="late")  # type: ignore[arg-type]
    await life.close(closed, reason="again")  # type: ignore[arg-type]
    assert_type(life.allow_turns(closed), OpenSession)
    request = await life.request_delete(closed)
    assert_type(request, DeleteRequested)
    await life.confirm_deleted(request)  # type: ignore[arg-type]
    decided = await life.await_decision(request, timeout_s=60)
    assert_type(decided, DeleteDecided)
    assert_type(await life.confirm_deleted(decided), DeleteConfirmed)
    await life.chat(opened, "hello")  # type: ignore[call-arg]
    failed: LifecycleError = SessionClosed("closed", next_step="fork it")
    assert_type(failed.next_step, str)


async def runtime(running: Runtime, action: ActionId, caller: Caller, given: wire.Action) -> None:
    async with running as entered:
        assert_type(entered, Runtime)
    assert_type(await running.submit(given, caller, MessageContext()), wire.ActionResult | wire.Ack)
    assert_type(await running.status(action, caller), wire.ActionStatus)
    assert_type(await running.result(action, caller), wire.ActionResult)
    assert_type(await running.health(), Mapping[str, Any])
    await running.submit({"id": "act_1"}, caller, MessageContext())  # type: ignore[arg-type]
    await running.result(action)  # type: ignore[call-arg]


def settings_and_app(settings: Settings) -> None:
    assert_type(Settings.load("aip-hermes.toml"), Settings)
    assert_type(Settings.load(Path("aip-hermes.toml")), Settings)
    assert_type(settings.endpoints, tuple[Endpoint, ...])
    assert_type(build_app(settings), Starlette)
    settings.endpoints = ()  # type: ignore[misc]
    build_app("aip-hermes.toml")  # type: ignore[arg-type]


def connector(made: HermesConnector, endpoint: Endpoint) -> list[Connector]:
    assert_type(made.offers(), Sequence[Offer])
    assert_type(endpoint.id, EndpointId)
    Endpoint(id="primary", base_url="http://127.0.0.1:8642", key=Secret("k"))  # type: ignore[arg-type]
    Endpoint(id=EndpointId("primary"), base_url="http://127.0.0.1:8642", key="k")  # type: ignore[arg-type]
    return [made]


async def session_db() -> None:
    async with SessionDB(Path("hermes.db")) as db:
        assert_type(db, SessionDB)
        assert_type(await db.get_session("s1"), dict[str, Any] | None)
        assert_type(await db.get_messages("s1"), list[dict[str, Any]])
        assert_type(await db.message_count("s1"), int)
        await db.create_session("s1", "cli", "a model")  # type: ignore[call-arg]


def small_things() -> None:
    assert_type(__version__, str)
    assert_type(new_id("act_"), str)


async def opening(folder: Path, connector: Connector) -> None:
    catalog = Catalog(connector.offers())
    runtime = await Runtime.open(
        store=folder / "aip.sqlite3",
        catalog=catalog,
        connectors=[connector],
        authorities=Authorities(),
        limits=RuntimeLimits(queue_tries=2),
    )
    assert_type(runtime, Runtime)
    await Runtime.open(store=folder, catalog=connector, connectors=[], authorities=Authorities())  # type: ignore[arg-type]


def starting(refused: SettingsError, in_the_way: CannotServe, store: StoreFailure) -> None:
    assert_type([str(failure) for failure in (refused, in_the_way, store)], list[str])
