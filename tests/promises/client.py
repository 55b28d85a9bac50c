"""What the client library and `aipctl` promise."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="client:send:once",
        source="design §8; command-line client §17",
        sentence="A message leaves once, whatever comes back: no repeat after an error status or a lost connection.",
    ),
    Promise(
        id="client:send:no-redirect",
        source="HTTP surface §11",
        sentence="A redirection is a failure; it is never followed, so a token reaches no other server.",
    ),
    Promise(
        id="client:send:loopback-not-proxied",
        source="field report F112",
        sentence="Proxy variables of the environment never apply to this machine.",
    ),
    Promise(
        id="client:reply:error-before-status",
        source="HTTP surface §10.4, client rule",
        sentence="The body's error counts first, then the action's status, then the HTTP status.",
    ),
    Promise(
        id="client:reply:outcome",
        source="design D1",
        sentence="Every action result is completed, pending, cancelled, failed, failed at the connector, or uncertain.",
    ),
    Promise(
        id="client:reply:bounded",
        source="HTTP surface §11",
        sentence="An answer beyond the limit is not read to its end and not taken for an answer.",
    ),
    Promise(
        id="client:reply:no-impostor",
        source="field report theme 8; derived check D04",
        sentence="A success status without an AIP reply in it is a failure.",
        diverges='The reference prints a non-JSON answer as {"body": …} and exits 0.',
    ),
    Promise(
        id="client:reply:one-meaning",
        source="second look at issue 2: hostile servers",
        sentence="An answer that two readers could understand differently, or that can't be printed, is no answer.",
    ),
    Promise(
        id="client:failure:told-apart",
        source="field reports F112, F113",
        sentence="Refused, unknown host, TLS, timeout and lost answer are different failures, each with a next step.",
    ),
    Promise(
        id="client:failure:lost-answer-uncertain",
        source="design D11, D19",
        sentence="A post whose answer is lost is uncertain; a read never is, and neither is a request never sent.",
    ),
    Promise(
        id="client:token:rules",
        source="HTTP surface §3.4",
        sentence="A token file that breaks a rule is refused before anything is sent, by path and rule.",
    ),
    Promise(
        id="client:token:not-shown",
        source="design §8",
        sentence="No token is part of a text, a failure or an output.",
    ),
    Promise(
        id="client:decision:binds-what-was-read",
        source="command-line client §17.3; design D25",
        sentence="A decision copies the policy hash of the record that was read, and only a pending record is decided.",
    ),
    Promise(
        id="client:decision:approver-of-token",
        source="command-line client §17.3; design D24",
        sentence="The approver is the principal of the token; the given id is used where the server can't tell.",
    ),
    Promise(
        id="client:names:lazy",
        source="design §2",
        sentence="Every public name can be imported, and importing the package loads none of them.",
    ),
    Promise(
        id="aipctl:help:light",
        source="design §2",
        sentence="`aipctl --help` imports neither httpx nor pydantic.",
    ),
    Promise(
        id="aipctl:options:anywhere",
        source="command-line client §14.1",
        sentence="Global options stand before or after the subcommand; the nearest value wins.",
    ),
    Promise(
        id="aipctl:options:environment",
        source="command-line client §14.1",
        sentence="The environment fills in what the command line leaves out; it wins for principal id and answer size.",
    ),
    Promise(
        id="aipctl:commands:routes",
        source="command-line client §14.3",
        sentence="Every command and option reaches the route and parameter of the page; what is unknown is refused.",
    ),
    Promise(
        id="aipctl:input:strict",
        source="issue 2; command-line client §14.2",
        sentence="Inline JSON, @file and - are read strictly (a file may have a byte order mark); a refusal names "
        "line and column, and nothing is sent.",
    ),
    Promise(
        id="aipctl:identity:before-sending",
        source="field report F014; issue 2",
        sentence="What the client generates is on stderr before the first byte leaves, and survives SIGKILL there.",
        diverges="The reference shows a generated id only in the answer.",
    ),
    Promise(
        id="aipctl:identity:no-invented-key",
        source="command-line client §14.4, §15.4",
        sentence="No idempotency key is made unless --generate-key asks for it.",
    ),
    Promise(
        id="aipctl:exit:codes",
        source="design D1; field report F109",
        sentence="Exit 0 answered, 1 failed, 2 usage, 4 unknown outcome; --fail-on-status adds 3, 5 and 6.",
    ),
    Promise(
        id="aipctl:exit:interrupt",
        source="issue 2",
        sentence="SIGINT during a call names the action and the query, exits 130 and shows no traceback.",
    ),
    Promise(
        id="aipctl:output:json-or-nothing",
        source="field reports F109, F110",
        sentence="Without --follow stdout is one JSON document or empty, whatever fails; talk and failures "
        "are text on stderr.",
    ),
    Promise(
        id="aipctl:output:unwritable",
        source="field report F110, second look at issue 2",
        sentence="Output that can't be written fails by a sentence; a stream that the caller closed is nobody's.",
    ),
    Promise(
        id="aipctl:output:neutralised",
        source="issue 2; style anchors 2.10",
        sentence="No control or direction character of a server reaches a terminal as itself.",
    ),
    Promise(
        id="aipctl:approval:shows-all",
        source="design D25; issue 2",
        sentence="`approval show` presents everything that a decision binds, and says so when the input is withheld.",
    ),
    Promise(
        id="aipctl:hint:pending",
        source="field report F068",
        sentence="A pending answer says who may decide, until when, and the next command.",
    ),
    Promise(
        id="aipctl:hint:failure",
        source="field reports F008, F113; style anchors 2.10",
        sentence="A failure names its code, the identity concerned, what the server listed, and the next safe step.",
    ),
    Promise(
        id="aipctl:hint:success-that-is-none",
        source="field report F086; design D7, D15, D20",
        sentence="An unchanged patch, an empty answer, an unstored turn, a moved session and a replay are said.",
    ),
)
