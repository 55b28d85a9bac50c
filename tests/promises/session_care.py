"""What removing, accounting and carrying sessions promise, and the commands for people who look after them."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="session_db:delete:lineage",
        source="Sessions §5.7, §16.9",
        sentence="A delete takes the row, its messages, its usage, prompts that nobody else uses and its subagents' "
        "rows at any depth; every other child stays without a parent.",
    ),
    Promise(
        id="session_db:delete:expected",
        source="Sessions §5.7, §16.9",
        sentence="A delete whose targets are no longer those that were shown removes nothing.",
    ),
    Promise(
        id="session_db:delete:files",
        source="Sessions §5.7",
        sentence="With a folder named, the transcript and request dumps of removed sessions go, and nothing outside of "
        "it or of another session.",
    ),
    Promise(
        id="session_db:delete:empty",
        source="Sessions §5.7",
        sentence="Empty rows are removed only where nothing is in them: no title, no message, no child.",
    ),
    Promise(
        id="session_db:delete:any-number",
        source="Sessions §5.7, §16.10",
        sentence="More than 40,000 rows are removed, pruned or put away in one call.",
    ),
    Promise(
        id="session_db:prune:ended",
        source="Sessions §5.7, §16.10",
        sentence="A prune removes ended rows by their last activity, subagents' rows not with them, and open ones are "
        "counted.",
    ),
    Promise(
        id="session_db:prune:filters",
        source="Sessions §5.7, §16.10",
        sentence="Each filter narrows a prune, its list of candidates, its count of open rows and an archive alike; "
        "`%` and `_` mean themselves.",
    ),
    Promise(
        id="session_db:prune:archive",
        source="Sessions §5.7",
        sentence="What is idle is put away by the age of its whole conversation, pinned rows only on request.",
    ),
    Promise(
        id="session_db:prune:now-and-then",
        source="Sessions §5.7",
        sentence="Automatic prune and archive run once per interval, whatever number of processes asks, and report a "
        "store's failure instead of raising it.",
    ),
    Promise(
        id="session_db:prune:room",
        source="Sessions §5.7",
        sentence="A vacuum gives the room of removed rows back while readers read and writers wait.",
    ),
    Promise(
        id="session_db:usage:sums",
        source="Sessions §5.9, §2.1",
        sentence="Reports add to the row, or replace its sums where they are absolute; the first one fixes model and "
        "billing route, counters hold more than 32 bits, and a missing row is made.",
    ),
    Promise(
        id="session_db:usage:by-model",
        source="Sessions §5.9, §2.4",
        sentence="Reports that are not absolute add to sums by model, route and task, side tasks to those alone, and "
        "these go with their session.",
    ),
    Promise(
        id="session_db:usage:impossible",
        source="Sessions §5.9",
        sentence="What is no possible count or cost counts as none.",
    ),
    Promise(
        id="session_db:usage:no-return",
        source="field reports on delete, lineage and resurrection",
        sentence="What is accounted late, queued or not, brings no session back that was removed.",
        diverges="existing releases make a row for it",
    ),
    Promise(
        id="session_db:usage:queue",
        source="Sessions §5.9",
        sentence="Queued reports are stored in order without being waited for, also by closing, and none is lost while "
        "another process has the store locked.",
    ),
    Promise(
        id="session_db:export:whole",
        source="Sessions §5.10, §16.15",
        sentence="What is exported, imported into another store and exported there is the same, but for the row ids of "
        "messages.",
    ),
    Promise(
        id="session_db:export:guard",
        source="Sessions §5.10",
        sentence="A session with more messages than an export may hold is refused with both numbers.",
    ),
    Promise(
        id="session_db:export:lineage",
        source="Sessions §5.10",
        sentence="A chain of compressions is exported as one conversation from any of its rows.",
    ),
    Promise(
        id="session_db:import:checked",
        source="Sessions §5.10, §16.15",
        sentence="An import with one wrong or too large session writes nothing and names each by its index.",
    ),
    Promise(
        id="session_db:import:never-merges",
        source="Sessions §5.10, §14",
        sentence="An id that is there is skipped; a parent that is missing or closes a circle is left out and counted.",
    ),
    Promise(
        id="session_db:import:titles",
        source="Sessions §5.10, §16.15",
        sentence="A session whose title another one has is imported without it, and the answer says so.",
        diverges="existing releases end the whole import with a failed constraint",
    ),
    Promise(
        id="sessions-command:reads",
        source="issue 6, design §7",
        sentence="`sessions list`, `show` and `search` answer from a folder of `hermes` or of `up`, whether its server "
        "runs, does not, or was killed, and change no byte; JSON for a pipe, tables for a terminal.",
    ),
    Promise(
        id="sessions-command:carry",
        source="issue 6, Sessions §5.10",
        sentence="What `sessions export` wrote comes back by `sessions import` as it was, beside a running server too; "
        "a file appears whole, for its owner alone, and replaces another one on request only.",
    ),
    Promise(
        id="sessions-command:broken-file",
        source="issue 6, field reports on bad input",
        sentence="A file with one wrong line is refused by its number before anything is written.",
    ),
    Promise(
        id="sessions-command:stopped",
        source="issue 6",
        sentence="An import that is stopped leaves whole sessions, and run again adds the rest.",
    ),
    Promise(
        id="sessions-command:prune",
        source="issue 6, Sessions §5.7",
        sentence="`sessions prune` removes what its filters mean, counts the same with --dry-run, and says what stays "
        "because it has not ended.",
    ),
    Promise(
        id="sessions-command:doctor",
        source="issue 6, Sessions §16.17",
        sentence="`sessions doctor` exits 1 where something fails, and --repair makes the search index anew while no "
        "server runs.",
    ),
    Promise(
        id="sessions-command:progress",
        source="issue 6",
        sentence="Export, import, prune and the making of the index show on a terminal how far they are.",
    ),
    Promise(
        id="sessions-command:mendable",
        source="issue 6, style anchors (command line)",
        sentence="A missing folder, a foreign, newer or older store, an unknown id and a closed pipe are one sentence "
        "with a next step.",
    ),
    Promise(
        id="sessions-command:light",
        source="style anchors (command line)",
        sentence="The help of `aip-hermes` and of its groups loads neither the store nor the web server.",
    ),
    Promise(
        id="docs:sessions",
        source="issue 6, style anchors (docs cannot rot)",
        sentence="The commands of the page about looking after an embedded Hermes run as they stand.",
    ),
)
