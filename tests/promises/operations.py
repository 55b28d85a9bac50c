"""What an operator may rely on: looking at a store, copying it, putting a copy back."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="store:look:changes-nothing",
        source="design §6, field report F032",
        sentence="Who looks at a store, served or not, clean or left by a killed server, changes no byte of its files "
        "and sees every commit.",
    ),
    Promise(
        id="backup:online",
        source="issue 4, Operations; design §6",
        sentence="A backup made while a server writes is one moment of the store: whole transactions, all up to it.",
    ),
    Promise(
        id="backup:private-and-whole",
        source="issue 4, Operations",
        sentence="A backup appears whole or not at all, as one file for its owner alone, and was checked before.",
    ),
    Promise(
        id="backup:never-overwrites",
        source="issue 4, Operations",
        sentence="A file that exists is overwritten with --force only; the store, the files that the engine keeps "
        "beside it, its lock, and what is no regular file, never.",
    ),
    Promise(
        id="backup:damaged-said",
        source="field report F035",
        sentence="A damaged store gives no backup: it is said, and nothing is left under the target's name.",
    ),
    Promise(
        id="restore:needs-the-folder",
        source="design §6",
        sentence="While a server runs, a restore is refused with its process id and nothing changes.",
    ),
    Promise(
        id="restore:keeps-the-old",
        source="issue 4, Operations",
        sentence="The store that was there is kept beside the restored one, with all that its log held, also where it "
        "was damaged.",
    ),
    Promise(
        id="restore:refuses",
        source="design §6, field report F037",
        sentence="A foreign, newer, damaged or missing backup, or one with a log beside it, is refused; backup and "
        "store stay byte for byte what they were.",
    ),
    Promise(
        id="restore:survives-kill",
        source="issue 4, Operations",
        sentence="Killed at any point, a restore leaves the old store or the new one under the store's name, openable, "
        "and the old one somewhere.",
    ),
    Promise(
        id="doctor:healthy",
        source="issue 4, Operations; field report F113",
        sentence="On a sound installation, served or not, every line of the doctor is ok and it exits 0.",
    ),
    Promise(
        id="doctor:finds",
        source="issue 4, Operations; field reports F073, F074, F113",
        sentence="Each thing that can be wrong gives one line of its own check, with its remedy; the exit status is 1 "
        "where one fails. A file in a folder that anybody may write to counts as one that anybody can change.",
    ),
    Promise(
        id="doctor:changes-nothing",
        source="design §6, field report F032",
        sentence="The doctor changes no byte of an installation, and says no secret.",
    ),
    Promise(
        id="doctor:json",
        source="issue 4, Operations",
        sentence="With --json stdout is one object with the findings, also where the settings can't be read.",
    ),
    Promise(
        id="prune:thin-edge",
        source="issue 4, Operations; design §6",
        sentence="`prune` works beside a running server, counts only with --dry-run, prints one JSON line, and leaves "
        "alone a store that does not exist or that its server has not migrated.",
    ),
    Promise(
        id="operations:commands",
        source="issue 4, Operations",
        sentence="A store that was backed up while its server worked can be restored by the commands, and the server "
        "goes on from there.",
    ),
    Promise(
        id="metrics:token",
        source="design D24",
        sentence="/metrics needs a token with `metrics:read`, and every tenant's figures one with `metrics:read:any`.",
        diverges="The reference serves /metrics to anybody.",
    ),
    Promise(
        id="metrics:counts",
        source="issue 4, Operations",
        sentence="Actions by operation and status, uncertain outcomes, provider time, fence hits, queue depth and "
        "pending approvals are what happened, each committed end counted once, also where a decision or a "
        "start ended it.",
    ),
    Promise(
        id="metrics:tenants-apart",
        source="design D24, issue 4",
        sentence="The figures of a tenant are byte for byte those of a server that only it uses.",
    ),
    Promise(
        id="metrics:closed-sets",
        source="issue 4, Operations",
        sentence="Label values come from closed sets; what a caller made up is `other`, and no value is a name or an "
        "id.",
    ),
    Promise(
        id="database:note:committed-only",
        source="issue 4, Operations",
        sentence="A note is told once after its commit and before its caller is answered, never for rows that were not "
        "kept, and a listener that fails spoils nothing.",
    ),
    Promise(
        id="notify:signed-hint",
        source="issue 4, Operations",
        sentence="When an approval waits, the address is told its id, capability, endpoint, requester and end, after "
        "the commit, signed over timestamp and body, and never the input.",
    ),
    Promise(
        id="notify:bounded",
        source="issue 4, Operations",
        sentence="A hint is sent at most five times, with growing pauses, to the configured address only; no action "
        "waits for it or fails by it.",
    ),
    Promise(
        id="settings:notify",
        source="issue 4, Operations",
        sentence="A webhook goes to https, or to this machine, and its secret is in a file of its owner's with 16 "
        "characters or more.",
    ),
    Promise(
        id="tracing:joined",
        source="issue 4, Operations",
        sentence="Each attempt is one span in the caller's trace with a child per step taken; its attributes are ids "
        "and members of closed sets.",
    ),
    Promise(
        id="tracing:optional",
        source="design §2",
        sentence="Without `tracing.enabled` OpenTelemetry is not imported; with it and without the extra, the start is "
        "refused in a sentence.",
    ),
    Promise(
        id="log:no-payload",
        source="issue 4, Operations; design D19",
        sentence="The log of a server is one JSON object per line with ids, and holds nothing that a caller or a "
        "provider put into a payload, a title, a key, a header or a query.",
    ),
)
