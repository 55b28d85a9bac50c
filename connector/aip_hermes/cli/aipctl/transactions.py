"""`aipctl transaction` and `aipctl resource`: what other servers keep; one of ours has none of either."""

from __future__ import annotations

from typing import Any

import click

from aip_hermes.cli.aipctl.arguments import ACTION_ID, CAPABILITY_ID, TEXT, URL
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.records import say_more
from aip_hermes.cli.aipctl.running import run
from aip_hermes.cli.aipctl.terminal import print_json

__all__ = ["resource", "transaction"]


@click.group()
@global_options
def transaction() -> None:
    """Transactions of a server that has them."""


@transaction.command("get")
@click.argument("url", metavar="URL", type=URL)
@click.option("--transaction-id", metavar="ID", type=TEXT)
@click.option("--plan-id", metavar="ID", type=TEXT, help="The transaction of this plan.")
@click.option("--action-id", metavar="ID", type=ACTION_ID, help="The transaction of this action.")
@click.option("--include-result", is_flag=True)
@click.option("--include-receipts", is_flag=True)
@global_options
def transaction_get(url: str, **params: Any) -> None:
    """Print one transaction, named by exactly one of three ids."""
    if sum(params[name] is not None for name in ("transaction_id", "plan_id", "action_id")) != 1:
        raise click.UsageError("give exactly one of --transaction-id, --plan-id and --action-id")
    print_json(run(url, lambda connection: connection.transaction(**params)))


@click.group()
@global_options
def resource() -> None:
    """Resources of a server that publishes them."""


@resource.command("list")
@click.argument("url", metavar="URL", type=URL)
@click.option("--capability-id", metavar="ID", type=CAPABILITY_ID)
@click.option("--kind", metavar="K", type=TEXT)
@click.option("--cursor", metavar="C", type=TEXT, help="`cursor` of the page before.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Resources of a page, at most 1000.")
@global_options
def resource_list(url: str, **params: Any) -> None:
    """Print a page of resources."""
    answer = run(url, lambda connection: connection.resources(**params))
    print_json(answer)
    say_more(answer["resource_list"])


@resource.command("read")
@click.argument("url", metavar="URL", type=URL)
@click.argument("resource_id", metavar="RESOURCE_ID", type=TEXT)
@global_options
def resource_read(url: str, resource_id: str) -> None:
    """Print one resource."""
    print_json(run(url, lambda connection: connection.resource(resource_id)))
