"""Where `capabilities.yaml` and `schemas/` are: inside the wheel, or at the root of a checkout.

Source: design §2.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

__all__ = ["contract_folder"]


@cache
def contract_folder() -> Traversable:
    """Return the folder that holds `capabilities.yaml` and `schemas/`.

    Raises: FileNotFoundError when the installation is incomplete.
    """
    packaged = files("aip_hermes") / "_contract"
    checkout = Path(__file__).resolve().parents[3]
    for folder in (packaged, checkout):
        if (folder / "capabilities.yaml").is_file() and (folder / "schemas").is_dir():
            return folder
    raise FileNotFoundError("this installation of aip-hermes-connector lacks capabilities.yaml and schemas")
