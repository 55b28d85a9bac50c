"""`aip-hermes verify`: plays the client checklist on a live deployment and writes its evidence, or checks evidence."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

import aip_hermes
from aip_hermes import log
from aip_hermes.cli.address import checked_origin
from aip_hermes.cli.aipctl.terminal import print_json, safe_text
from aip_hermes.client import AipClient, ClientFailure, SqliteIdentityStore
from aip_hermes.client.checklist import Cleaned, Document, Program, Told, markdown, problems_of, run_checklist
from aip_hermes.client.checklist.case import marked
from aip_hermes.ids import EndpointId

__all__ = ["EvidenceRefused", "fits", "program_identity", "run_check", "run_verify"]

_DISTRIBUTION = "aip-hermes-connector"
_MARKS = {"pass": "ok  ", "fail": "FAIL", "not_applicable": "n/a "}
_KNOWN_REASONS = (None, "kept", "no-reviewer")
_MAX_BYTES = 4 * 1024 * 1024
_CODE = (".py", ".sql")


class EvidenceRefused(ClientFailure, code="verify.evidence_refused", category="permanent"):
    """A file of evidence that can't be read."""


async def run_verify(
    *,
    url: str,
    token_file: Path,
    reviewer_token_file: Path | None,
    endpoint: EndpointId,
    evidence: Path,
    revision: str | None,
    tls_ca_file: Path | None,
    keep_sessions: bool,
    as_json: bool,
) -> int:
    """Play the checklist, write evidence, print its path (or it) on stdout; 0 where no point failed, else 1.

    Identities are kept in a folder beside the evidence while it runs; it goes when no session is left in doubt.
    Raises: AddressRefused, TokenRefused, the failures of a client before the first point, OSError.
    """
    checked_origin("URL", url)
    log.configure(stream=sys.stderr, console=True, level="error")
    run = secrets.token_hex(6)
    kept = evidence / f"verification-{run}.identities"
    left: list[Cleaned] = []
    begun: list[int] = []

    def tell(told: Told) -> None:
        begun.append(told.number)
        _tell(told)

    try:
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(SqliteIdentityStore(kept / "identities.db"))
            requester = await stack.enter_async_context(
                AipClient(base_url=url, token_file=token_file, store=store, tls_ca_file=tls_ca_file)
            )
            reviewer: AipClient | None = None
            if reviewer_token_file is not None:
                reviewer = await stack.enter_async_context(
                    AipClient(base_url=url, token_file=reviewer_token_file, tls_ca_file=tls_ca_file)
                )
            _make(evidence)
            document = await run_checklist(
                requester=requester,
                reviewer=reviewer,
                program=program_identity(revision),
                endpoint=endpoint,
                run=run,
                tell=tell,
                on_cleanup=left.extend,
                keep_sessions=keep_sessions,
            )
    finally:
        _tell_left(left)
        known = all(each.reason in _KNOWN_REASONS for each in left)
        if known and (left or not begun):
            shutil.rmtree(kept, ignore_errors=True)
        else:
            click.echo(f"kept, to look up what is left: {kept}", err=True)
    path = _written(document, evidence)
    if as_json:
        print_json(document.json_value())
    else:
        print(path)
    return 0 if document.verdict == "pass" else 1


def fits(revision: str) -> bool:
    """Whether a revision can stand in a document."""
    return marked(revision) == revision


def run_check(path: Path) -> int:
    """Validate a document, and the Markdown beside it; print one JSON document. 0 where nothing is wrong, else 1.

    Raises: EvidenceRefused.
    """
    text = _read(path)
    beside = path.with_suffix(".md")
    rendering = _read(beside) if beside.exists() and beside != path else None
    problems = problems_of(text, rendering=rendering)
    found: dict[str, object] = {"file": str(path), "valid": not problems, "problems": problems}
    if not problems:
        document = Document.model_validate_json(text)
        found |= {"run": document.run, "verdict": document.verdict, "sha256": document.sha256}
        found["markdown"] = "same" if rendering is not None else "absent"
    print_json(found)
    return 1 if problems else 0


def program_identity(revision: str | None) -> Program:
    """Return what verifies. Its hash is over path and content of each source file of the installed package."""
    root = Path(aip_hermes.__file__).parent
    hashes = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in _CODE):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        hashes.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    try:
        installed = version(_DISTRIBUTION)
    except PackageNotFoundError:
        installed = "unknown"
    return Program(
        distribution=_DISTRIBUTION,
        version=installed,
        code_sha256=f"sha256:{hashes.hexdigest()}",
        revision=revision,
    )


def _tell(told: Told) -> None:
    if told.outcome is None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{told.number:>3}/{told.of} {told.sentence}")
            sys.stderr.flush()
        return
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    quirks = f" (quirk seen: {', '.join(told.quirks)})" if told.quirks else ""
    reason = "" if told.reason is None else f"\n      {safe_text(told.reason)}"
    click.echo(f"{start}{_MARKS[told.outcome]} {told.number:>2} {told.sentence}{quirks}{reason}", err=True)


def _tell_left(left: Sequence[Cleaned]) -> None:
    for each in left:
        if each.outcome == "left":
            click.echo(f"left at the endpoint: session {each.session_id} ({each.reason})", err=True)


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _written(document: Document, folder: Path) -> Path:
    path = folder / f"verification-{document.run}.json"
    text = json.dumps(document.json_value(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    for target, content in ((path, text), (path.with_suffix(".md"), markdown(document))):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
    return path


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise EvidenceRefused(f"{path} is longer than {_MAX_BYTES} bytes", next_step="name a file of evidence")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise EvidenceRefused(f"{path} is no UTF-8", next_step="name the .json file of the evidence") from None
