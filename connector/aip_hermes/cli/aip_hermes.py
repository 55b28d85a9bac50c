"""`aip-hermes`: the operator's command. Bodies import what they run, so that `--help` stays quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from aip_hermes.cli.ending import Program, cancelled_by_signals, guarded, run
from aip_hermes.cli.sessions.command import sessions

__all__ = ["main"]

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PORT = click.IntRange(0, 65535)

_until_stdin_closes = click.option("--until-stdin-closes", is_flag=True, hidden=True)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="aip-hermes-connector")
def main() -> None:
    """Serve Hermes sessions as governed AIP capabilities.

    Begin with `demo`, then `up`; for a Hermes of your own `init`, then `serve`. Data goes to stdout, talk to stderr.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # started with that stream closed
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - stays open to the end


@main.command()
@click.option("--keep", is_flag=True, help="Keep the folder with the stores and logs.")
@click.option("--endpoint", metavar="URL", help="Walk against a Hermes that already runs.")
@click.option("--key-file", type=FILE, help="File (0600) with that Hermes' API key.")
def demo(keep: bool, endpoint: str | None, key_file: Path | None) -> None:
    """Walk a session's life and verify each step.

    Starts an AIP server and an embedded Hermes as processes in a temporary folder, and removes both afterwards. Exit 0
    only when every verification held, 1 otherwise, 130 when stopped.
    """
    from aip_hermes.cli.demo.command import run_demo

    if (endpoint is None) != (key_file is None):
        raise click.UsageError("--endpoint and --key-file belong together")
    sys.exit(run(cancelled_by_signals(run_demo(endpoint_url=endpoint, key_file=key_file, keep=keep))))


@main.command()
@click.option("--data", type=FOLDER, default=Path("aip-hermes-data"), show_default=True, help="Made on first start.")
@click.option("--port", type=PORT, default=8080, show_default=True, help="Of the AIP server; 0 picks a free one.")
@click.option("--hermes-port", type=PORT, default=8642, show_default=True, help="Of the Hermes; 0 picks a free one.")
def up(data: Path, port: int, hermes_port: int) -> None:
    """Run an embedded Hermes and an AIP server.

    Until Ctrl-C or SIGTERM. Prints one JSON line on stdout when both are ready: addresses, and where the tokens are.
    """
    from aip_hermes.cli.init import ready_home
    from aip_hermes.cli.up import run_up

    home = guarded(lambda: ready_home(data, port=port, hermes_port=hermes_port))
    sys.exit(run(run_up(home=home, port=port, hermes_port=hermes_port)))


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--reviewer-dir", type=FOLDER, help="Where the reviewer's token goes, away from the requester's.")
def init(folder: Path, reviewer_dir: Path | None) -> None:
    """Write settings and tokens for `serve` into FOLDER.

    A commented settings file, a requester's and a reviewer's token, and the approval-authority file. What exists stays.
    """
    from aip_hermes.cli.init import run_init

    guarded(lambda: run_init(folder=folder, reviewer_folder=reviewer_dir))


@main.command()
@click.option("--config", type=FILE, required=True, help="The settings file that `init` wrote.")
@click.option("--port", type=PORT, help="Instead of the file's; 0 picks a free one.")
@click.option("--endpoint-url", hidden=True, help="Instead of the file's base_url, where it has one endpoint.")
@_until_stdin_closes
def serve(config: Path, port: int | None, endpoint_url: str | None, until_stdin_closes: bool) -> None:
    """Run the AIP server in front of your own Hermes.

    Until Ctrl-C or SIGTERM; SIGHUP reads the tokens again. Prints one JSON line on stdout when it is ready.
    """
    from aip_hermes.cli.serve import run_serve

    run(run_serve(config=config, port=port, endpoint_url=endpoint_url, until_stdin_closes=until_stdin_closes))


@main.command()
@click.option("--data", type=FOLDER, default=Path("hermes-data"), show_default=True, help="Made on first start.")
@click.option("--port", type=PORT, default=8642, show_default=True, help="0 picks a free one.")
@click.option(
    "--quirk", "quirks", multiple=True, metavar="NAME", help="Behave like a release that people run; repeatable."
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME:OPERATION:COUNT",
    help="Let the next COUNT requests fail, e.g. lost-answer:session_chat:1; repeatable.",
)
@click.option("--model", default="offline", show_default=True, help="`offline`, or the name of a model at --model-url.")
@click.option("--model-url", metavar="URL", help="An OpenAI-compatible endpoint, e.g. http://127.0.0.1:11434/v1.")
@click.option("--model-key-file", type=FILE, help="File (0600) with that endpoint's key.")
@click.option(
    "--model-window", type=click.IntRange(min=1), metavar="TOKENS",
    help="What the model reads at most: longer conversations are summed up in their rows. Without it none is.",
)  # fmt: skip
@_until_stdin_closes
def hermes(
    data: Path, port: int, quirks: tuple[str, ...], faults: tuple[str, ...], model: str,
    model_url: str | None, model_key_file: Path | None, model_window: int | None, until_stdin_closes: bool,
) -> None:  # fmt: skip
    """Run the embedded Hermes alone.

    Until Ctrl-C or SIGTERM. Prints one JSON line on stdout when it is ready.
    """
    from aip_hermes.cli.hermes import run_hermes

    if (model == "offline") != (model_url is None):
        raise click.UsageError("a model other than `offline` needs --model-url, and --model-url needs --model NAME")
    run(
        run_hermes(
            folder=data, port=port, quirks=quirks, faults=faults, model=model, model_url=model_url,
            model_key_file=model_key_file, model_window=model_window, until_stdin_closes=until_stdin_closes,
        )
    )  # fmt: skip


@main.command()
@click.option("--config", type=FILE, required=True, help="The settings file of the server.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def doctor(config: Path, as_json: bool) -> None:
    """Examine an installation and say what to do.

    One line per question: ok, warn or FAIL, and the remedy. Whether the server runs or not; nothing is changed. Exit 1
    where something fails.
    """
    from aip_hermes.cli.doctor.command import run_doctor

    sys.exit(run(run_doctor(config=config, as_json=as_json)))


@main.command()
@click.option("--config", type=FILE, required=True, help="The settings file of the server.")
@click.option("--older-than", "age", required=True, metavar="AGE", help="As 30d, 12h or 90m, since it settled.")
@click.option("--dry-run", is_flag=True, help="Only count.")
def prune(config: Path, age: str, dry_run: bool) -> None:
    """Forget actions that settled long ago.

    While the server runs or not. Unfinished actions, fences in force, receipts and the audit log stay. Prints one JSON
    line on stdout.
    """
    from aip_hermes.cli.prune import age_ms, run_prune

    run(run_prune(config=config, older_than_ms=age_ms(age), dry_run=dry_run))


@main.command()
@click.option("--dsn", required=True, help="A path, or postgresql://user@host:5432/database.")
@click.option(
    "--store",
    type=click.Choice(["runtime", "sessions"]),
    default="runtime",
    show_default=True,
    help="A server's actions, or the sessions of a SessionDB.",
)
@click.option("--check", is_flag=True, help="Only say whether it is ready; nothing is made or changed.")
def migrate(dsn: str, store: str, check: bool) -> None:
    """Bring a store to this program's schema.

    Once, before servers that share a database start; a server on a file does it itself. Exit 0 when the store is
    ready. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.migrate import run_migrate

    run(run_migrate(dsn=dsn, store=store, check=check))


@main.command()
@click.option("--config", type=FILE, required=True, help="The settings file of the server.")
@click.option("--force", is_flag=True, help="Replace TARGET where it exists.")
@click.argument("target", type=click.Path(path_type=Path))
def backup(config: Path, target: Path, force: bool) -> None:
    """Copy the store to the file TARGET.

    While the server runs or not; the copy is of one moment, checked, and readable by you alone. It holds what the store
    holds: keep it as safe. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.copies import run_backup

    guarded(lambda: run_backup(config=config, target=target, force=force))


@main.command()
@click.option("--config", type=FILE, required=True, help="The settings file of the server, which must not run.")
@click.argument("backup_file", metavar="BACKUP", type=FILE)
def restore(config: Path, backup_file: Path) -> None:
    """Put BACKUP in the place of the store.

    The store that was there is kept beside it. Prints one JSON line on stdout.
    """
    from aip_hermes.cli.copies import run_restore

    guarded(lambda: run_restore(config=config, backup=backup_file))


@main.command()
@click.option("--evidence", type=FOLDER, help="Keep stores, log and report.json there; new or empty.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def conformance(evidence: Path | None, as_json: bool) -> None:
    """Play the AIP connector kit and print its report.

    The connector and the runtime as they are installed here, before a double of Hermes on loopback: nothing else is
    asked, and nothing of yours is touched. Exit 0 only when every check holds, 1 otherwise.
    """
    from aip_hermes.cli.conformance.command import run_conformance

    sys.exit(run(cancelled_by_signals(run_conformance(evidence=evidence, as_json=as_json))))


@main.command()
@click.argument("url", required=False)
@click.option("--token-file", type=FILE, help="File (0600) with the token of who asks.")
@click.option("--reviewer-token-file", type=FILE, help="File (0600) with the token of another principal, who decides.")
@click.option("--endpoint", default="primary", show_default=True, help="Of the server's Hermes endpoints.")
@click.option("--evidence", type=FOLDER, default=Path("aip-hermes-evidence"), show_default=True, help="Written there.")
@click.option("--revision", metavar="TEXT", help="Of what is deployed, for the record.")
@click.option("--tls-ca-file", type=FILE, help="An authority of your own, for https.")
@click.option("--keep-sessions", is_flag=True, help="Leave the sessions that it makes.")
@click.option("--json", "as_json", is_flag=True, help="Print the document instead of its path.")
@click.option("--check", "checked", type=FILE, metavar="FILE", help="Validate evidence instead; no URL.")
def verify(
    url: str | None, token_file: Path | None, reviewer_token_file: Path | None, endpoint: str, evidence: Path,
    revision: str | None, tls_ca_file: Path | None, keep_sessions: bool, as_json: bool, checked: Path | None,
) -> None:  # fmt: skip
    """Play the client checklist at URL and write evidence.

    Fourteen points on a live AIP server, with sessions of its own, which it takes away again where a reviewer's token
    lets it. Exit 0 where every point passed or does not apply, 1 otherwise.
    """
    from aip_hermes.cli.verify import fits, run_check, run_verify
    from aip_hermes.ids import EndpointId

    if (url is None) == (checked is None):
        raise click.UsageError("give the URL of an AIP server, or --check FILE")
    if checked is not None:
        path = checked
        sys.exit(guarded(lambda: run_check(path)))
    if token_file is None:
        raise click.UsageError("--token-file names the file with the token of who asks")
    if revision is not None and not fits(revision):
        raise click.UsageError("--revision is at most 160 letters, digits and `_.:+-`, as a tag or a commit is")
    try:
        named = EndpointId(endpoint)
    except ValueError as error:
        raise click.UsageError(f"--endpoint: {error}") from None
    sys.exit(
        run(
            cancelled_by_signals(
                run_verify(
                    url=url or "", token_file=token_file, reviewer_token_file=reviewer_token_file, endpoint=named,
                    evidence=evidence, revision=revision, tls_ca_file=tls_ca_file, keep_sessions=keep_sessions,
                    as_json=as_json,
                )
            )
        )
    )  # fmt: skip


main.add_command(sessions)


if __name__ == "__main__":
    main()
