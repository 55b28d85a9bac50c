"""The native AIP surface over HTTP: authentication, messages, reads, discovery."""

from aip_hermes.server.auth import TokenTable
from aip_hermes.server.gateway import ActionRuntime, Gateway
from aip_hermes.server.routes import native_application, routes

__all__ = ["ActionRuntime", "Gateway", "TokenTable", "native_application", "routes"]
