"""Methods on single values of a row, and on values of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import meta, sessions, settings
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.model_config import config_of
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["SettingMethods"]


class SettingMethods(StoreFile):
    """Place, configuration, prompt and route of a row. An unknown id is nothing to do."""

    async def update_session_cwd(
        self,
        session_id: str,
        cwd: str,
        git_branch: str | None = None,
        git_repo_root: str | None = None,
        replace_git_meta: bool = False,
    ) -> None:
        """Write where a session works. replace_git_meta: what git knows is cleared where none is given."""
        asked = {
            "id": scrubbed(session_id),
            "cwd": scrubbed(cwd),
            "git_branch": None if git_branch is None else scrubbed(git_branch),
            "git_repo_root": None if git_repo_root is None else scrubbed(git_repo_root),
            "replace": int(replace_git_meta),
        }
        await self.write(lambda c: c.execute(QUERIES["write_place"], asked))

    async def backfill_repo_roots(self, cwd_to_root: Mapping[str, str]) -> None:
        """Write the repository of the rows that work in a folder and name none."""
        rows = [{"cwd": scrubbed(cwd), "root": scrubbed(root)} for cwd, root in cwd_to_root.items() if root]

        def fill(connection: Connection) -> None:
            for row in rows:
                connection.execute(QUERIES["fill_repo_root"], row)

        await self.write(fill)

    async def update_session_meta(self, session_id: str, model_config_json: str, model: str | None = None) -> None:
        """Replace the configuration by a JSON text; the model stays where none is given."""
        await self.write(lambda c: settings.write_config_text(c, session_id, model_config_json, model=model))

    async def update_session_model(self, session_id: str, model: str) -> None:
        """Change the model; `browser_model_lock` and the stored prompt of the one before go."""
        await self.write(lambda c: settings.write_model(c, session_id, model))

    async def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Change the stored prompt; None removes it."""
        await self.write(lambda c: settings.write_prompt(c, session_id, system_prompt))

    async def update_session_runtime_lock(
        self,
        session_id: str,
        *,
        model: str | None = None,
        provider: str | None = None,
        model_options: Mapping[str, Any] | None = None,
        route_source: str | None = None,
        confirmed: bool = False,
    ) -> None:
        """Note the route that a session is locked to, as `browser_model_lock` in its configuration."""
        patch = settings.runtime_lock(
            model=model,
            provider=provider,
            model_options=model_options,
            route_source=route_source,
            confirmed=confirmed,
            now=self._now(),
        )
        await self.write(lambda c: settings.patch_config(c, session_id, patch))

    async def update_session_billing_route(
        self, session_id: str, *, provider: str, base_url: str, billing_mode: str | None = None
    ) -> None:
        """Write who is paid; the mode stays where none is given."""
        asked = {
            "id": scrubbed(session_id),
            "provider": scrubbed(provider),
            "base_url": scrubbed(base_url),
            "billing_mode": None if billing_mode is None else scrubbed(billing_mode),
        }
        await self.write(lambda c: c.execute(QUERIES["write_billing_route"], asked))

    async def patch_session_model_config(self, session_id: str, patch: Mapping[str, Any]) -> None:
        """Set members of the configuration; None removes one."""
        await self.write(lambda c: settings.patch_config(c, session_id, patch))

    async def get_session_model_config_value(self, session_id: str, key: str, default: Any = None) -> Any:
        """Return one member of the configuration."""
        row = await self.read(lambda c: sessions.fetch(c, session_id))
        return default if row is None else config_of(row["model_config"]).get(key, default)

    async def get_meta(self, key: str) -> str | None:
        """Return a value of the store, or None."""
        return await self.read(lambda c: meta.value_of(c, key))

    async def set_meta(self, key: str, value: str) -> None:
        """Write a value of the store."""
        await self.write(lambda c: meta.write(c, key, str(value)))
