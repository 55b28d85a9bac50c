"""The agent of the embedded Hermes: AIAgent, its turns, its tools, its compression."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

PROMISES = (
    Promise(
        id="agent:history",
        source="Sessions §12, §16.14",
        sentence="Calls on one instance remember each other, with and without a store.",
        diverges="Releases document it and send the newest message only.",
    ),
    Promise(
        id="agent:opens-late",
        source="Sessions §3, §16.1",
        sentence="Neither the construction of an agent nor entering and leaving it makes a file.",
    ),
    Promise(
        id="agent:serialised",
        source="Sessions §12, §16.14",
        sentence="Concurrent calls on one instance run one after the other, in call order; instances run side by side.",
    ),
    Promise(
        id="agent:explicit-history",
        source="Sessions §12",
        sentence="A conversation_history is copied, not written to the store, and the instance's own from then on.",
    ),
    Promise(
        id="agent:resume",
        source="Sessions §12; the Sessions guide",
        sentence="The id of an old session alone loads nothing; with its resumed history the conversation goes on.",
    ),
    Promise(
        id="agent:result",
        source="Sessions §12",
        sentence="The result of a turn tells answer, messages, counts, session and whether all of it is stored; the "
        "row has the same counts.",
    ),
    Promise(
        id="agent:model-failed",
        source="Sessions §12",
        sentence="A model that failed is a failed result with status and what its endpoint said, without credentials; "
        "the question stays and reaches the model with the next one; chat raises TurnFailed.",
        diverges="chat of a release returns the text of the failure like an answer.",
    ),
    Promise(
        id="agent:iterations",
        source="Sessions §12 (max_iterations)",
        sentence="A turn asks the model at most max_iterations times, and says so where that was not enough.",
    ),
    Promise(
        id="agent:stream",
        source="Sessions §12 (stream_callback)",
        sentence="A stream callback, plain or async, hears the text in order; what it raises fails no turn.",
    ),
    Promise(
        id="agent:close",
        source="Sessions §12",
        sentence="Closing waits for the turn, ends a row that had one as agent_close unless it has ended, leaves a "
        "borrowed store open, may be repeated; a new turn opens such a row again and no other.",
        diverges="Releases leave the row ended.",
    ),
    Promise(
        id="agent:arguments",
        source="Sessions §12; issue 6",
        sentence="An argument that the agent does not act on is refused with the reason, never ignored; what is so "
        "anyway may be asked for.",
    ),
    Promise(
        id="agent:toolsets",
        source="Sessions §12",
        sentence="enabled_toolsets and disabled_toolsets choose what the model is offered; a tool that fails is a "
        "failed result, and the turn goes on.",
    ),
    Promise(
        id="agent:own-turn",
        source="Sessions §12 (serialised turns)",
        sentence="A tool or a callback that asks its own agent, or closes it, is refused at once: it would wait for "
        "the end of the turn that waits for it.",
        diverges="Nothing is said about it elsewhere; a lock that is not entered twice hangs.",
    ),
    Promise(
        id="agent:misuse",
        source="Sessions §12; the habits for errors",
        sentence="A message, a history, a lease time or an address that is none is refused before anything is stored "
        "or sent.",
    ),
    Promise(
        id="agent:quiet",
        source="own choice: stdout belongs to data",
        sentence="A script that configures no log gets warnings on stderr, as servers write them, and nothing "
        "on its own output.",
    ),
    Promise(
        id="agent:odd-rows",
        source="Sessions §2.2, §7 (what rows may hold)",
        sentence="A turn goes on whatever the calls, results and texts of its history hold: the model reads what can "
        "be read, the rows stay as they are.",
    ),
    Promise(
        id="agent:tools:any",
        source="Sessions §12 (own tools)",
        sentence="A tool may be a plain function, return anything that JSON can say, and give up work of its own; none "
        "of these ends the turn.",
    ),
    Promise(
        id="agent:durable",
        source="Sessions §12, §16.14",
        sentence="Row and question are on disk before the first request, tool rows before the next one, also when the "
        "process is killed while the model thinks.",
    ),
    Promise(
        id="agent:cancelled",
        source="Sessions §12, §16.14; design §7",
        sentence="A turn that is cancelled at any await keeps what there is, text as an interrupted row, lets go of "
        "its lease and raises CancelledError; the next turn carries it on.",
        diverges="Releases drop the partial text.",
    ),
    Promise(
        id="agent:not-stored",
        source="Sessions §11, §16.13; design §7",
        sentence="A question that can't be stored is not asked; an answer that can't be stored is told with "
        "persisted false and the cause.",
        diverges="Releases return such an answer as completed, without a word.",
    ),
    Promise(
        id="agent:lease",
        source="Sessions §11, §16.13",
        sentence="A turn holds the lease of its conversation, waits for another's, goes on with what that one stored, "
        "and says so where it waited in vain.",
    ),
    Promise(
        id="agent:lease:endpoint",
        source="Sessions §11; issue 6",
        sentence="An endpoint and a script on one store take turns of one session one after the other, and a session "
        "is not deleted while the script has it.",
    ),
    Promise(
        id="agent:overtaken",
        source="Sessions §10, §11",
        sentence="An agent whose conversation somebody else went on with reads the stored one at its next turn, and "
        "follows it into a compressed child.",
    ),
    Promise(
        id="agent:default-store",
        source="Sessions §12, §16.14; issue 6",
        sentence="Without a store nothing is kept until a recall tool opens $HERMES_HOME/state.db, which then holds "
        "the whole turn and is closed with the agent.",
    ),
    Promise(
        id="agent:default-store:foreign",
        source="issue 6; design §6",
        sentence="A state.db of another Hermes is not touched: the tool says so and names session_db=, and the turn "
        "goes on.",
    ),
    Promise(
        id="agent:compression",
        source="Sessions §10",
        sentence="A conversation beyond its share of the model's window is compressed before the request, in place or "
        "into a linked child, and no call is parted from its result.",
    ),
    Promise(
        id="agent:compression:overflow",
        source="Sessions §10 (provider overflow)",
        sentence="A model that says that its context is exceeded is asked once more with the compressed conversation; "
        "one too short for that fails.",
    ),
    Promise(
        id="session_db:compression:covered",
        source="Sessions §10 (a concurrent append)",
        sentence="Rows that others write between those that a compression covers follow behind it, live and unread.",
        diverges="Releases hide them with the rest: they look at the newest row alone.",
    ),
    Promise(
        id="session_db:title:continued",
        source="Sessions §5.4, §10",
        sentence="A continuation whose numbered title would be too long gets a shorter one, and the rotation goes on.",
    ),
    Promise(
        id="session_db:lease:cut-chain",
        source="Sessions §5.7, §11",
        sentence="A delete or a prune of earlier segments takes no conversation away from the turn that runs in it.",
        diverges="Releases key the lease by the first segment; when that goes, the turn has lost it.",
    ),
    Promise(
        id="session_db:lineage:long",
        source="Sessions §6, §11",
        sentence="A conversation of more than a hundred segments has one tip, one lease and one entry in a list.",
        diverges="Releases give up after a hundred steps, and are in the middle of the conversation then.",
    ),
    Promise(
        id="agent:compression:endpoint",
        source="Sessions §10; issue 6",
        sentence="An endpoint that knows what its model reads compresses a conversation that outgrows it in place; the "
        "session's id stays, and without that knowledge nothing is compressed.",
    ),
    Promise(
        id="agent:compression:failed",
        source="Sessions §10",
        sentence="A summary that fails changes nothing, is noted on the row, and is not tried again by itself for a "
        "while.",
    ),
    Promise(
        id="agent:compression:demanded",
        source="Sessions §10 (force)",
        sentence="compress() compresses at once, says false where there is too little or somebody else does it, and "
        "works without a store.",
    ),
    Promise(
        id="agent:guide",
        source="issue 6; the Sessions guide",
        sentence="Every example of the page about using Hermes in a script runs as it stands.",
    ),
)
