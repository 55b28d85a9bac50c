"""An endpoint over a data folder: lock, store, application; opened and closed in that order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette

from aip_hermes.database import OwnerLock
from aip_hermes.embedded.agent import Model, OfflineModel
from aip_hermes.embedded.api import build_app
from aip_hermes.embedded.folder import LOCK_NAME, STORE_NAME
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.ports import Clock, NewId
from aip_hermes.secret import Secret

__all__ = ["LOCK_NAME", "STORE_NAME", "open_endpoint"]


@asynccontextmanager
async def open_endpoint(
    folder: Path,
    *,
    key: Secret,
    model: Model | None = None,
    quirks: Iterable[str] = (),
    faults: Iterable[str] = (),
    model_name: str = "hermes-agent",
    model_window: int | None = None,
    clock: Clock | None = None,
    new_id: NewId | None = None,
) -> AsyncIterator[Starlette]:
    """Yield the application of an endpoint whose sessions live in `folder`; serve it inside the block.

    model: borrowed; without one the offline model answers. The store closes with the block, so the server ends inside.
    Raises AlreadyOwned where another process serves the folder, StoreRefused for a foreign file, ValueError as
    build_app.
    """
    with OwnerLock(folder, name=LOCK_NAME):
        async with SessionDB(folder / STORE_NAME, clock=clock) as db:
            db.actor = "endpoint"
            app = build_app(
                db=db,
                model=model or OfflineModel(),
                key=key,
                quirks=quirks,
                faults=faults,
                model_name=model_name,
                model_window=model_window,
                clock=clock,
                new_id=new_id,
            )
            # Open now: a folder that can't be used stops the start, not the first request.
            await db.get_session("")
            yield app
