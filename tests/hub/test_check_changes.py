"""Releases with checks: compared, passed on without posts' words, and put back whole."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from rich.console import Console

from echo_hf.cli.build_view import show_diff
from echo_hf.hub.diff import compare_releases
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.publish import count_restricted_rows, describe_changes
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import read_release, read_release_facts, unpack_release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.systems.checks import Check, CheckCertificate
from echo_hf.tables import CHECKS
from tests.hub.conftest import Configs, Write
from tests.hub.quickstart_release import entry
from tests.markdown_for_tests import shown
from tests.systems.test_checks import make


def table(*checks: Check) -> Dataset:
    rows = [check.model_dump(mode="json") for check in checks]
    return Dataset(pa.Table.from_pylist(rows, CHECKS.features.arrow_schema))


def certified(j: float, **fields: Any) -> Check:
    counts = {"complaint_threads": 20, "praise_threads": 30}
    certificate = CheckCertificate(judge="mira", j=j, low=j - 0.2, high=j + 0.1, **counts)
    return make(status="kept", certificates=(certificate,), **fields)


def test_checks_of_two_releases_are_compared(write: Write, configs: Configs) -> None:
    before = [certified(0.8), certified(0.7, name="hands"), certified(0.6, name="words")]
    after = [
        certified(0.5),
        make("hands", status="retired", reason="complaint_gone"),
        make("tiles", status="fell", reason="weak"),
    ]
    a = write("a", {**configs, "checks": table(*before)})
    b = write("b", {**configs, "checks": table(*after)})
    difference = compare_releases(a, b)
    assert [(change.name, change.event) for change in difference.checks] == [
        ("cast", "proven"),
        ("hands", "retired"),
        ("tiles", "appeared"),
        ("words", "gone"),
    ]
    sentences = [change["sentence"] for change in difference.to_json()["checks"]]
    assert sentences[0] == (
        "cast@1 is kept as before: J 0.50 (0.30 to 0.60) on 20 + 30 threads, J before 0.80"
    )
    console = Console(file=io.StringIO(), width=200)
    show_diff(console, difference)
    assert isinstance(console.file, io.StringIO)
    assert all(sentence in console.file.getvalue() for sentence in sentences)
    assert all(sentence in shown(describe_changes(difference)) for sentence in sentences)
    # Older releases have none.
    assert compare_releases(write("old"), a).configs["checks"].a is None
    assert [change.event for change in compare_releases(write("none"), a).checks] == [
        "appeared"
    ] * 3
    assert compare_releases(a, a).checks == ()


def test_what_a_hostile_release_calls_a_check_is_shown_as_text(
    write: Write, configs: Configs
) -> None:
    """Nobody has looked at its rows when releases are compared."""
    row = make().model_dump(mode="json")
    row |= {"name": "<img src=x>[x](http://y)\n# no", "status": "\x1b[2Jkept", "reason": "**b**"}
    rows = Dataset(pa.Table.from_pylist([row], CHECKS.features.arrow_schema))
    difference = compare_releases(write("a"), write("b", {**configs, "checks": rows}))
    text = describe_changes(difference)
    assert "\n# no" not in text
    assert "<img" not in text.replace(r"\<", "")
    assert "](http" not in text.replace(r"\]", "")
    console = Console(file=io.StringIO(), width=200)
    show_diff(console, difference)
    assert isinstance(console.file, io.StringIO)
    assert "\x1b" not in console.file.getvalue()


def test_rows_without_values_are_compared_all_the_same(write: Write, configs: Configs) -> None:
    row = {**dict.fromkeys(CHECKS.columns), "name": "cast", "version": 1}
    full = make().model_dump(mode="json")
    others = [{**full, "name": None, "certificates": [None]}, {**full, "version": None}]
    rows = Dataset(pa.Table.from_pylist([row, *others], CHECKS.features.arrow_schema))
    changes = compare_releases(write("a"), write("b", {**configs, "checks": rows})).checks
    assert [change.event for change in changes] == ["appeared"] * 2
    assert all(change.sentence for change in changes)


def test_checks_are_passed_on_and_put_back_as_they_are(quickstart: Path, tmp_path: Path) -> None:
    """They name samples, and hold no words of posts: none of theirs is left out."""
    release, store = (
        read_release(quickstart / "runs/quickstart/release"),
        ImageStore(tmp_path / "p"),
    )
    configs = unpack_release(release, store)
    shown_in = [
        {"sample_id": name, "thread": number, "label": "complaint", "part": "proof"}
        for number, name in enumerate(configs["analysis"]["id"])
    ]
    check = certified(0.8, evidence=shown_in, provenance='{"stage": "checks"}')
    facts = read_release_facts(release)
    full = write_release(tmp_path / "full", {**configs, "checks": table(check)}, store, facts)
    dry = dehydrate(full.path, tmp_path / "dry")
    assert count_restricted_rows(full) > 0
    assert dry.datasets["checks"].to_list() == full.datasets["checks"].to_list()
    assert compare_releases(full, dry).checks == ()
    posts = [entry(quickstart / "posts" / "posts.jsonl")]
    wet = hydrate(dry.path, tmp_path / "wet", posts).release
    assert wet.manifest.configs["checks"] == full.manifest.configs["checks"]
