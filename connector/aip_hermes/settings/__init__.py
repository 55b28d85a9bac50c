"""One settings file, read once, to frozen objects. Everything else takes its part of them as an argument."""

from aip_hermes.settings.settings import Settings
from aip_hermes.settings.template import render_template
from aip_hermes.settings.values import (
    STRONG_TOKEN_CHARS,
    LimitSettings,
    LogSettings,
    NotifySettings,
    RetentionSettings,
    ServerSettings,
    SettingsError,
    StoreSettings,
    TokenSettings,
)

__all__ = [
    "STRONG_TOKEN_CHARS",
    "LimitSettings",
    "LogSettings",
    "NotifySettings",
    "RetentionSettings",
    "ServerSettings",
    "Settings",
    "SettingsError",
    "StoreSettings",
    "TokenSettings",
    "render_template",
]
