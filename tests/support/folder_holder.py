"""A process that has a data folder until its stdin ends: `python -m tests.support.folder_holder FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from aip_hermes.database import OwnerLock

if __name__ == "__main__":
    with OwnerLock(Path(sys.argv[1])):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.read()
