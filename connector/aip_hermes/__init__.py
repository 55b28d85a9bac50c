"""AIP capability connector for Hermes Agent.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aip_hermes.app import CannotServe, build_app
    from aip_hermes.client import (
        AipClient,
        AipConnection,
        CallFailed,
        CallIdentities,
        CallRecord,
        CallResult,
        ClientFailure,
        HermesClient,
        HermesRefused,
        IdentityStore,
        NoAnswer,
        NotReachable,
        PeerError,
        Reply,
        Resumed,
        SqliteIdentityStore,
        load_token,
    )
    from aip_hermes.client.lifecycle import LifecycleError, LifecyclePolicy, SessionLifecycle
    from aip_hermes.contract import Catalog
    from aip_hermes.contract.handler import Connector
    from aip_hermes.database import StoreFailure
    from aip_hermes.embedded import SessionDB
    from aip_hermes.errors import AipError
    from aip_hermes.hermes import Endpoint, HermesConnector
    from aip_hermes.ids import (
        ActionId,
        ApprovalId,
        CapabilityId,
        HermesSessionId,
        HermesSessionKey,
        IdempotencyKey,
        IdentityError,
    )
    from aip_hermes.ports import new_id
    from aip_hermes.runtime import Authorities, Caller, MessageContext, Runtime, RuntimeLimits
    from aip_hermes.secret import Secret
    from aip_hermes.settings import Settings, SettingsError

    __version__: str

__all__ = [
    "ActionId",
    "AipClient",
    "AipConnection",
    "AipError",
    "ApprovalId",
    "Authorities",
    "CallFailed",
    "CallIdentities",
    "CallRecord",
    "CallResult",
    "Caller",
    "CannotServe",
    "CapabilityId",
    "Catalog",
    "ClientFailure",
    "Connector",
    "Endpoint",
    "HermesClient",
    "HermesConnector",
    "HermesRefused",
    "HermesSessionId",
    "HermesSessionKey",
    "IdempotencyKey",
    "IdentityError",
    "IdentityStore",
    "LifecycleError",
    "LifecyclePolicy",
    "MessageContext",
    "NoAnswer",
    "NotReachable",
    "PeerError",
    "Reply",
    "Resumed",
    "Runtime",
    "RuntimeLimits",
    "Secret",
    "SessionDB",
    "SessionLifecycle",
    "Settings",
    "SettingsError",
    "SqliteIdentityStore",
    "StoreFailure",
    "__version__",
    "build_app",
    "load_token",
    "new_id",
]

_HOMES = {
    "aip_hermes.app": ("CannotServe", "build_app"),
    "aip_hermes.client": (
        "AipClient", "AipConnection", "CallFailed", "CallIdentities", "CallRecord", "CallResult", "ClientFailure",
        "HermesClient", "HermesRefused", "IdentityStore", "NoAnswer", "NotReachable", "PeerError", "Reply", "Resumed",
        "SqliteIdentityStore", "load_token",
    ),
    "aip_hermes.client.lifecycle": ("LifecycleError", "LifecyclePolicy", "SessionLifecycle"),
    "aip_hermes.contract": ("Catalog",),
    "aip_hermes.contract.handler": ("Connector",),
    "aip_hermes.database": ("StoreFailure",),
    "aip_hermes.embedded": ("SessionDB",),
    "aip_hermes.errors": ("AipError",),
    "aip_hermes.hermes": ("Endpoint", "HermesConnector"),
    "aip_hermes.ids": (
        "ActionId", "ApprovalId", "CapabilityId", "HermesSessionId", "HermesSessionKey", "IdempotencyKey",
        "IdentityError",
    ),
    "aip_hermes.ports": ("new_id",),
    "aip_hermes.runtime": ("Authorities", "Caller", "MessageContext", "Runtime", "RuntimeLimits"),
    "aip_hermes.secret": ("Secret",),
    "aip_hermes.settings": ("Settings", "SettingsError"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = _version()
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aip-hermes-connector")
    except PackageNotFoundError:
        # A checkout that was never installed.
        return "0+unknown"
