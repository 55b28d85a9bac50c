"""The command `aipctl`: the root group and the program's end."""

from __future__ import annotations

import json
import sys

import click

import aip_hermes
from aip_hermes.cli.aipctl.actions import action
from aip_hermes.cli.aipctl.aip_sessions import session
from aip_hermes.cli.aipctl.approvals import approval
from aip_hermes.cli.aipctl.discovery import capability, manifest
from aip_hermes.cli.aipctl.log import events
from aip_hermes.cli.aipctl.options import global_options
from aip_hermes.cli.aipctl.receipts import receipt
from aip_hermes.cli.aipctl.records import audit
from aip_hermes.cli.aipctl.running import FAILED, INTERRUPTED
from aip_hermes.cli.aipctl.terminal import drop_unwritten, open_streams, say
from aip_hermes.cli.aipctl.transactions import resource, transaction
from aip_hermes.cli.aipctl.transcripts import transcript

__all__ = ["aipctl", "main"]

_EPILOG = """Options of this level may also stand after the subcommand; the nearest value wins. JSON goes to stdout,
everything else to stderr. Exit codes: 0 answered, 1 failed, 2 usage, 4 the outcome is unknown, 130 interrupted."""


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"aipctl {aip_hermes.__version__}")
        context.exit()


@click.group(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show it.")
@global_options
def aipctl() -> None:
    """Call capabilities of an AIP server, look up what became of it, and decide approvals."""


@aipctl.command("version")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@global_options
def version(output: str) -> None:
    """Show the version of this client."""
    if output == "json":
        click.echo(json.dumps({"name": "aipctl", "version": aip_hermes.__version__, "aip_version": "1.0"}, indent=2))
    else:
        click.echo(f"aipctl {aip_hermes.__version__}")


aipctl.add_command(manifest)
aipctl.add_command(capability)
aipctl.add_command(action)
aipctl.add_command(approval)
aipctl.add_command(events)
aipctl.add_command(receipt)
aipctl.add_command(audit)
aipctl.add_command(transcript)
aipctl.add_command(session)
aipctl.add_command(transaction)
aipctl.add_command(resource)


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    open_streams()
    try:
        code = aipctl.main(prog_name="aipctl", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        code = exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        code = INTERRUPTED
    except OSError as exc:
        # Every other one is answered where it happens: what is left is our own output.
        drop_unwritten(why=None if isinstance(exc, BrokenPipeError) else (exc.strerror or "refused").lower())
        code = FAILED
    sys.exit(code or 0)
