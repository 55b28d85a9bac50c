"""What is promised about approvals: votes, revocation, expiry, what a decision meets."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="approval:quorum:counts-different-approvers",
        source="runtime behaviour §9.4, issue: flat quorum",
        sentence="Where several approvals are needed, only those of different principals count; each is kept with its "
        "reason and evidence, in the store, as an event and as an audit record.",
    ),
    Promise(
        id="approval:quorum:repeated-vote",
        source="runtime behaviour §9.5, design D9",
        sentence="The identical vote again answers its recorded event; another approval by the same principal, or "
        "other content under the same decision id, is refused with its code.",
    ),
    Promise(
        id="approval:quorum:one-denial-ends",
        source="runtime behaviour §9.4",
        sentence="One denial ends the approval, however many approvals were given.",
    ),
    Promise(
        id="approval:quorum:at-once",
        source="runtime behaviour §21.4: conflicting decisions, one winner",
        sentence="Of decisions that arrive at once, from whatever connection, at most one ends the approval; the "
        "others are answered with a code, and the action runs at most once.",
    ),
    Promise(
        id="approval:revoked",
        source="runtime behaviour §9.3, step 10; issue: revocation",
        sentence="An approving decision can be revoked by its id while its action has sent nothing: the approval is "
        "revoked, the action fails with policy.approval_revoked, nothing is sent; afterwards it is refused.",
        diverges="The reference revokes only while the approval is pending; ours also what was approved and not run.",
    ),
    Promise(
        id="approval:expiry:worker",
        source="runtime behaviour §9.6, field report F067",
        sentence="An approval whose time is up is ended without anybody asking: its action fails with "
        "policy.approval_expired, its key answers that, an event and an audit record tell it.",
    ),
    Promise(
        id="approval:expiry:alone",
        source="runtime behaviour §9.6, design D2",
        sentence="An approval that can't be ended keeps no other one from its end, no read from its answer and no "
        "start from succeeding; it is tried again later.",
    ),
    Promise(
        id="approval:asked-again",
        source="field report F067, design D2",
        sentence="After an expiry a new Action ID and key make a new approval; the old ones answer the old end.",
    ),
    Promise(
        id="approval:selector",
        source="runtime behaviour §9.3, step 8; field report F065",
        sentence="Only who matches the frozen selector (principal, role, group, external system or tenant policy) "
        "decides, and the requester never does, whatever selector it matches and whichever of its tokens it uses.",
    ),
    Promise(
        id="approval:policy-refused-at-start",
        source="runtime behaviour §9.4, §20; issue: flat quorum",
        sentence="A published policy with a rule of several parts, a delegated authority, no approver or no time is "
        "refused when the runtime opens, by capability and reason.",
    ),
    Promise(
        id="approval:terms-of-endpoint",
        source="runtime behaviour §9.2, §9.4",
        sentence="An endpoint's selector, number of approvers and time to decide are published in the policy of every "
        "gated operation, and frozen with each request.",
    ),
    Promise(
        id="approval:transitions-audited",
        source="runtime behaviour §15; issue: stored transitions",
        sentence="Asking, voting, approving, denying, revoking and expiring each leave an event and an audit record.",
    ),
    Promise(
        id="approval:context",
        source="design D25",
        sentence="Who may see an approval may read what its operation would touch besides its target, live, in at most "
        "two seconds, with the votes so far; what can't be read is said with its reason.",
    ),
    Promise(
        id="approval:context:children",
        source="design D25, Hermes API §5.5",
        sentence="For the delete of a session the context names the children that would lose their parent and the "
        "sub-agents that may go along, at any depth, with counts, and says when it did not see all rows.",
    ),
    Promise(
        id="approval:independent",
        source="field report F071",
        sentence="Several pending approvals of one principal are decided independently of each other.",
    ),
    Promise(
        id="aipctl:approval:revoke",
        source="runtime behaviour §9.3, step 10",
        sentence="`approval revoke` takes back the approving decision that was named, the only one, or the token's "
        "own; it guesses nothing and then sends nothing.",
    ),
    Promise(
        id="aipctl:approval:counted",
        source="AIP HTTP surface §9.5",
        sentence="An approval that does not suffice is said with how many there are and how many are needed.",
    ),
    Promise(
        id="aipctl:approval:list-request",
        source="AIP HTTP surface §14.3",
        sentence="`approval list` asks for the events of approvals and `approval request` sends an ApprovalRequest, as "
        "the command-line client of the reference does.",
    ),
    Promise(
        id="aipctl:approval:refusal-step",
        source="design D9, AIP HTTP surface §9.4",
        sentence="A refused decision is followed by the next safe step for the rule that it broke.",
    ),
)
