"""What is promised of `/ready`."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="server:ready:takes-writes",
        source="issue 4 (ask it anything, and what it says is true); HTTP surface, health",
        sentence="`/ready` says ready of a store that answers a read and takes a write within five seconds, on a file "
        "system that is neither read-only nor full; asking changes no byte of it, unless the last commit was refused.",
    ),
)
