"""`aipctl receipt`: a chain of receipts, and whether it holds, without asking anybody."""

from __future__ import annotations

from typing import Any

import click

from aip_hermes.cli.aipctl.arguments import DOCUMENT, RECEIPT_ID, TEXT, URL, JsonSource
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.running import FAILED, CommandFailed, run
from aip_hermes.cli.aipctl.terminal import print_json
from aip_hermes.ids import ReceiptId

__all__ = ["receipt"]


@click.group()
@global_options
def receipt() -> None:
    """Chains of receipts: read one, verify one."""


@receipt.command("get")
@click.argument("url", metavar="URL", type=URL)
@click.option("--chain-id", metavar="ID", type=TEXT, help="As approval:appr_….")
@click.option("--receipt-id", metavar="ID", type=RECEIPT_ID, help="rcpt_…: the whole chain that has it.")
@global_options
def receipt_get(url: str, chain_id: str | None, receipt_id: ReceiptId | None) -> None:
    """Print a chain of receipts."""
    if chain_id is not None and receipt_id is None:
        print_json(run(url, lambda connection: connection.receipt_chain(chain_id)))
    elif receipt_id is not None and chain_id is None:
        print_json(run(url, lambda connection: connection.chain_of_receipt(receipt_id)))
    else:
        raise click.UsageError("give exactly one of --chain-id and --receipt-id")


@receipt.command("verify", epilog="Exit codes besides the usual ones: 1 for a chain that does not hold.")
@click.argument("source", metavar="PATH", type=DOCUMENT)
@click.option("--holds-hash", metavar="HASH", type=TEXT, help="Of the last receipt of an earlier reading.")
@global_options
def receipt_verify(source: JsonSource, holds_hash: str | None) -> None:
    """Verify a chain in a file, or - for stdin, as `receipt get` printed it. Nobody is asked.

    What was changed, left out or put in shows. That the end was cut off shows only to who kept the hash of a later
    receipt, and gives it as --holds-hash.
    """
    from aip_hermes.client import chain_problems
    from aip_hermes.wire.schema import schema_violations

    given = source.parsed()
    chain = given.get("receipt_chain", given) if isinstance(given, dict) else None
    if not isinstance(chain, dict):
        raise click.UsageError(f"{source.origin} is no chain of receipts: an object with `receipts` is needed")
    # A member that nobody knows is covered by no hash.
    problems = chain_problems(chain) or schema_violations("receipt_chain", chain) or _missing(chain, holds_hash)
    if problems:
        raise CommandFailed(
            f"the chain {chain.get('chain_id', '?')} does not hold; do not rely on it",
            *(f"  {problem}" for problem in problems),
            "  next: read it again from the server (aipctl receipt get), and compare",
            exit_code=FAILED,
        )
    print_json(
        {
            "chain_id": chain["chain_id"],
            "valid": True,
            "receipts": len(chain["receipts"]),
            "last_hash": chain["receipts"][-1]["hash"],
            "root_hash": chain.get("root_hash"),
        }
    )


def _missing(chain: dict[str, Any], holds_hash: str | None) -> list[str]:
    """Say what a chain of right hashes lacks."""
    hashes = [each["hash"] for each in chain.get("receipts", [])]
    if not hashes:
        return ["it has no receipts, so it proves nothing"]
    if holds_hash is not None and holds_hash.strip() not in hashes:
        return ["no receipt has the hash that was given: the end was cut off, or it is of another chain"]
    return []
