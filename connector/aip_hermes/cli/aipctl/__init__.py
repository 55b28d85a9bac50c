"""`aipctl`: discover, call, look up and decide, as one principal of an AIP server.

Nothing here imports httpx or pydantic until a command runs.
"""

from aip_hermes.cli.aipctl.command import main

__all__ = ["main"]
