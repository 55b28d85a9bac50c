"""What the commands about records promise, and the report of the connector kit."""

from tests.promises.promise import Promise

_TABLE = "AIP HTTP surface §14.3, issue 4"

PROMISES = (
    Promise(
        id="aipctl:records:routes",
        source=_TABLE,
        sentence="`action list`, `events list`, `receipt get` and `audit events` make one request each, with exactly "
        "the options that were given, and print the answer as it came.",
    ),
    Promise(
        id="aipctl:records:more",
        source="issue 4, field reports on failure that looks like success",
        sentence="A page that is not the last says on stderr how to read on.",
    ),
    Promise(
        id="aipctl:records:server",
        source="issue 4",
        sentence="The commands about records work against the server, and say the next step where it refuses.",
    ),
    Promise(
        id="aipctl:events:follow",
        source="AIP HTTP surface §7.2, §17",
        sentence="`events list --follow` prints each event once, when it comes, and when interrupted the command that "
        "goes on behind the last position.",
    ),
    Promise(
        id="aipctl:receipt:verify",
        source="wire model §8.2, issue 4",
        sentence="`receipt verify` exits 0 only for a chain of which nothing was changed, added, moved or left out, "
        "and finds a cut-off end for who kept a hash.",
    ),
    Promise(
        id="aipctl:manifest:validate",
        source=_TABLE,
        sentence="`manifest validate` prints `manifest valid` for what the server publishes, and else exits 1 with "
        "every place that breaks the schema or a rule.",
    ),
    Promise(
        id="commands:reference",
        source="issue 4, style anchors (docs cannot rot)",
        sentence="The page of commands has every command with the line that its help begins with, and no other.",
    ),
    Promise(
        id="commands:exit-codes",
        source="design D1",
        sentence="A command of `aipctl` without an answer exits 4 where the page says that it may, and else 1; a wrong "
        "command line is 2.",
    ),
    Promise(
        id="conformance:command:passes",
        source="runtime behaviour §21.1, issue 4",
        sentence="`aip-hermes conformance` reports 13 checks and 31 of 31 assertions that apply, each check with an "
        "artifact that the kept store has, and exits 0.",
    ),
    Promise(
        id="conformance:command:fails",
        source="issue 4",
        sentence="What does not hold, lacks evidence or ends early is named with what was expected, and exits 1; the "
        "other scenarios are played all the same.",
    ),
    Promise(
        id="conformance:command:apart",
        source="issue 4",
        sentence="The command needs nothing of the tests, keeps what was in the evidence folder, and leaves nothing "
        "behind where none is named.",
    ),
)
