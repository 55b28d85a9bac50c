"""The evidence of a verification: what a check takes and refuses, and what the form does not let in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from aip_hermes.cli.aip_hermes import main
from aip_hermes.client.checklist import Document, markdown, problems_of
from aip_hermes.client.checklist.case import Point
from aip_hermes.client.checklist.document import digest_of
from tests.support.checklist_evidence import a_document


def text_of(value: Any) -> str:
    return json.dumps(value)


def changed(change: Callable[[dict[str, Any]], None], *, seal: bool = False) -> str:
    value = a_document().json_value()
    change(value)
    if seal:
        value["sha256"] = digest_of(value)
    return text_of(value)


def fail_one(value: dict[str, Any]) -> None:
    value["points"][3] |= {"outcome": "fail", "reason": "expected: something"}


@pytest.mark.requirement("checklist:check")
def test_a_sealed_document_has_no_problem_in_whatever_layout() -> None:
    value = a_document().json_value()
    for text in (text_of(value), json.dumps(value, indent=2), json.dumps(value, sort_keys=True)):
        assert problems_of(text, rendering=markdown(a_document())) == []


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a status": lambda value: value["points"][5]["seen"].update(status="failed"),
    "a count": lambda value: value["points"][5]["seen"].update(messages=3),
    "a claim": lambda value: value["points"][5].update(held=["it held too"]),
    "a time": lambda value: value.update(ended_at="2030-01-01T00:00:01Z"),
    "the origin": lambda value: value["deployment"].update(origin="http://127.0.0.1:8081"),
    "the revision": lambda value: value["program"].update(revision="another"),
    "a session": lambda value: value["cleanup"].clear(),
    "the hash": lambda value: value.update(sha256="sha256:" + "0" * 64),
}


@pytest.mark.requirement("checklist:check")
@pytest.mark.parametrize("what", CHANGES)
def test_whatever_was_changed_after_the_seal_is_found(what: str) -> None:
    assert problems_of(changed(CHANGES[what])) == ["sha256: the document was changed after it was sealed"]


SEALED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a failed point, a verdict of pass": (fail_one, "verdict"),
    "a pass with a reason": (lambda value: value["points"][0].update(reason="because"), "point 1"),
    "a fail without a reason": (lambda value: value["points"][2].update(outcome="fail"), "point 3"),
    "a pass without a claim": (lambda value: value["points"][0].update(held=[]), "point 1"),
    "a point less": (lambda value: value["points"].pop(), "points"),
    "two points swapped": (lambda value: value["points"].reverse(), "points"),
    "another sentence": (lambda value: value["points"][0].update(sentence="Something else."), "points"),
    "a quirk left out": (lambda value: value["quirks"].clear(), "quirks"),
    "times out of order": (lambda value: value["points"][4].update(ended_at="2029-01-01T00:00:00Z"), "point 5"),
    "a member that is none": (lambda value: value.update(note="x"), "note"),
    "a text among the facts": (lambda value: value["points"][0]["seen"].update(reply="what was said"), "points.0.seen"),
    "a nested fact": (lambda value: value["points"][0]["seen"].update(row={"title": "x"}), "points.0.seen"),
    "a path in the origin": (lambda value: value["deployment"].update(origin="http://u:p@h/"), "deployment.origin"),
    "another kind": (lambda value: value.update(kind="other"), "kind"),
}


@pytest.mark.requirement("checklist:check")
@pytest.mark.parametrize("what", SEALED)
def test_a_document_that_does_not_fit_is_refused_with_a_hash_that_does(what: str) -> None:
    change, about = SEALED[what]
    problems = problems_of(changed(change, seal=True))
    assert problems
    assert all(not problem.startswith("sha256") for problem in problems)
    assert any(problem.startswith(about) for problem in problems), problems


@pytest.mark.requirement("checklist:check")
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": 1, "kind": 2}', '{"kind": NaN}', "[" * 5000])
def test_what_is_no_document_is_a_problem_and_no_traceback(text: str) -> None:
    assert problems_of(text)


@pytest.mark.requirement("checklist:check")
def test_a_rendering_that_says_something_else_is_found() -> None:
    told = markdown(a_document()).replace("14 passed", "13 passed")
    assert problems_of(text_of(a_document().json_value()), rendering=told) == [
        "the Markdown beside it says something else"
    ]


@pytest.mark.requirement("checklist:check")
@pytest.mark.parametrize(
    ("text", "beside", "status"),
    [
        (text_of(a_document().json_value()), markdown(a_document()), 0),
        (text_of(a_document().json_value()), None, 0),
        (text_of(a_document().json_value()), "# Verification: pass\n", 1),
        (changed(fail_one), None, 1),
        ("no JSON", None, 1),
    ],
)
def test_the_command_prints_one_document_and_exits_as_it_found(
    tmp_path: Path, text: str, beside: str | None, status: int
) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text, encoding="utf-8")
    if beside is not None:
        path.with_suffix(".md").write_text(beside, encoding="utf-8")
    done = CliRunner().invoke(main, ["verify", "--check", str(path)])
    assert done.exit_code == status, done.output
    found = json.loads(done.stdout)
    assert found["valid"] is (status == 0)
    assert bool(found["problems"]) is (status == 1)


@pytest.mark.requirement("checklist:check")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["verify"], 2),
        (["verify", "http://127.0.0.1:9", "--check", "x.json"], 2),
        (["verify", "http://127.0.0.1:9"], 2),
        (["verify", "http://127.0.0.1:9", "--token-file", "x", "--endpoint", "a b"], 2),
        (["verify", "http://127.0.0.1:9", "--token-file", "x", "--revision", "two words"], 2),
        (["verify", "--check", "none.json"], 1),
        (["verify", "ftp://x", "--token-file", "x"], 1),
        (["verify", "http://127.0.0.1:9", "--token-file", "no-such-token"], 1),
    ],
)
def test_a_wrong_command_line_says_what_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, arguments)
    assert list(tmp_path.iterdir()) == []
    assert (done.exit_code, done.stdout) == (status, "")
    assert isinstance(done.exception, SystemExit)
    assert done.stderr


@pytest.mark.requirement("checklist:redacted")
@pytest.mark.parametrize("said", ["two words", "a\nb", "", "ünsafe", "x" * 161, "<b>", "a/b"])
def test_a_text_that_is_no_id_and_no_code_becomes_its_hash(said: str) -> None:
    point = Point()
    point.saw(answered=said)
    kept = point.seen["answered"]
    assert isinstance(kept, str)
    assert kept.startswith("sha256:")
    with pytest.raises(ValidationError):
        Document.model_validate(a_document().json_value() | {"run": said})


@pytest.mark.requirement("checklist:how-to")
def test_the_how_to_has_the_points_of_the_checklist() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "verify-a-deployment.md").read_text(encoding="utf-8")
    for point in a_document().points:
        assert f"\n| {point.number} {point.id} | " in page
