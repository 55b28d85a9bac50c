"""What Ctrl-C does to a command, wherever it comes."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="commands:interrupt:waiting",
        source="field report F041",
        sentence="Each command that waits for a server, an endpoint or another program's lock ends at SIGINT with 130, "
        "soon, with nothing on stdout and no traceback.",
    ),
    Promise(
        id="commands:interrupt:anywhere",
        source="field report F041",
        sentence="Wherever on its way a command on a store is interrupted, it ends with 130 or with what it had done, "
        "without a traceback, and leaves stores and copies whole.",
    ),
    Promise(
        id="aipctl:identity:killed-anywhere",
        source="field report F014",
        sentence="Killed at any place, `aipctl action call` has said on stderr the id of what it sent, and the server "
        "knows that action or says that it never received it.",
    ),
)
