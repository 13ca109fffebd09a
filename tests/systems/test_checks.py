"""Checks as a table and as files, and as rubrics of the judges that they are certified for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.config.checks import ModelIdentity
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.rubrics import read_rubric
from echo_hf.errors import RunError
from echo_hf.systems.checks import (
    Check,
    CheckCertificate,
    add_checks,
    parse_checks,
    read_check_file,
    write_checks,
    write_instructions,
)
from echo_hf.tables import CHECKS


def make(name: str = "cast", **fields: Any) -> Check:
    question, counts = "Is the whole picture tinted?", "A tint over neutral areas."
    known = {"question": question, "counts_as_yes": counts, "title": "Cast"}
    known |= {"instructions": write_instructions(question, counts), "keywords": ["colour cast"]}
    return Check.model_validate({"name": name, "version": 1, **known, **fields})


def certified(judge: str, model: str | None = None) -> CheckCertificate:
    return CheckCertificate(judge=judge, model=model, kept=True)


def test_a_table_of_checks_is_read_as_it_was_written(tmp_path: Path) -> None:
    evidence = [{"sample_id": "s", "thread": 3, "label": "praise", "part": "proof"}]
    checks = (
        make(status="replaced", evidence=evidence, certificates=[certified("mira")]),
        make(version=2, fits="Does the task ask for colors?", status="kept", day="2026-04-01"),
        make("words", reason="weak", status="fell"),
    )
    path = write_checks(tmp_path, reversed(checks))
    assert parse_checks(pq.read_table(path), "checks") == checks
    assert pq.read_schema(path).names == list(CHECKS.columns)


def test_a_file_is_a_rubric_and_says_the_same_until_it_is_edited(tmp_path: Path) -> None:
    check = make(fits="Does the task leave colors as they are?")
    write_checks(tmp_path, [check])
    path = tmp_path / "checks" / "cast.md"
    rubric = read_rubric(path)
    assert (rubric.name, rubric.answer, rubric.better) == ("cast", "yes_no", "lower")
    assert rubric.question == check.fits
    assert check.rubric.name == "cast@1"
    assert check.rubric.instructions == rubric.instructions
    assert read_check_file(path, check) is check


@pytest.mark.parametrize("status", ["retired", "withdrawn"])
def test_the_file_of_a_check_that_is_no_longer_asked_goes(tmp_path: Path, status: str) -> None:
    write_checks(tmp_path, [make()])
    write_checks(tmp_path, [make(status=status)])
    assert not list((tmp_path / "checks").iterdir())


def test_only_the_judge_and_model_of_a_certificate_are_asked() -> None:
    engine = {"kind": "openai", "base_url": "http://localhost:9", "model": "org/eyes"}
    judges = [{"name": name, "engine": engine} for name in ("mira", "other")]
    config = EvaluationBase.model_validate({"name": "run", "judges": judges})
    model = config.judges[0].answered_by.model
    kept = make(status="kept", certificates=[certified("mira", model)])
    asked = add_checks(config, [kept, make("words", status="fell")])
    assert [judge.rubrics for judge in asked.judges] == [("overall", "cast@1"), ("overall",)]
    assert asked.find_rubric("cast@1").better == "lower"
    older = make(status="kept", certificates=[certified("mira", "org/older")])
    assert [judge.rubrics for judge in add_checks(config, [older]).judges] == [("overall",)] * 2
    assert ModelIdentity(model=model).model == model


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "../../etc/passwd"),
        ("version", 0),
        ("instructions", "x" * 20_001),
        ("status", "certified"),
        ("question", "a\x1b[2Jb"),
    ],
)
def test_a_hostile_table_is_refused_in_a_line(column: str, value: Any) -> None:
    row = {**make().model_dump(mode="json"), column: value}
    table = pa.Table.from_pylist([row], CHECKS.schema)
    with pytest.raises(RunError) as refused:
        parse_checks(table, "checks.parquet")
    assert str(refused.value).startswith(f"checks.parquet, row 1: {column}")
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_version_stands_once() -> None:
    rows = [make().model_dump(mode="json")] * 2
    with pytest.raises(RunError, match="has a version of a check twice"):
        parse_checks(pa.Table.from_pylist(rows, CHECKS.schema), "checks.parquet")
