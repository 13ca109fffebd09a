"""How far a run's judges agree with people: from tables and files to figures and a terminal."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.errors import RunError, ScoreError, TableError
from echo_hf.hub.facts import LeftOut
from echo_hf.judging.score import RunAgreement, measure_agreement
from echo_hf.scores import agreement
from echo_hf.systems.run_tables import read_human_file
from echo_hf.tables import HUMAN, RATINGS
from tests.judging.run_for_tests import Row, called, digest_of, rating, root, run, stripes, write

SYSTEMS = ("ash", "birch", "cedar")
ORDERS = {"ada": (1, 2, 3), "ben": (1, 2, 3), "cy": (2, 1, 3)}
WORDS = tuple(f"word{at:02}" for at in range(12))
EDITS = {f"edit{at}": [stripes((at, 100, 100), (140, 140, 140))] for at in range(2)}


def ranked(samples: tuple[str, ...], **orders: tuple[int | None, ...]) -> list[Row]:
    return [
        {"sample_id": name, "rater": rater, "system": system, "rank": rank, "cannot_rank": None}
        for name in samples
        for rater, ranks in (orders or ORDERS).items()
        for system, rank in zip(SYSTEMS, ranks, strict=True)
    ]


def rated(**ratings: tuple[float | None, ...]) -> list[Row]:
    words = [(name, digest_of(name)) for name in WORDS]
    edits = [(name, digest_of(name, inputs)) for name, inputs in EDITS.items()]
    return [
        rating(name, system, value, judge=judge, sample_digest=digest)
        for name, digest in words + edits
        for judge, values in ratings.items()
        for system, value in zip(SYSTEMS, values, strict=True)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path, EDITS, WORDS)
    write(tmp_path, RATINGS, rated(mira=(9, 5, 1), nils=(1, 5, 9)))
    write(tmp_path, HUMAN, ranked((*WORDS, *EDITS)))
    return tmp_path


def found(folder: Path, **options: Any) -> RunAgreement:
    return measure_agreement(
        folder / "evaluation.yaml", runs=folder / "runs", **{"n_boot": 0, **options}
    )


def test_splits_are_there_beside_what_they_merge_to(folder: Path) -> None:
    result = found(folder)
    samples = {name: one.counts.samples for name, one in result.splits.items()}
    assert samples == {"image_to_image": 2, "text_to_image": 12}
    assert result.merged.counts.samples == 14
    words = [row for row in rated(mira=(9, 5, 1), nils=(1, 5, 9)) if row["sample_id"] in WORDS]
    alone = agreement(ranked(WORDS), words, n_boot=0)
    assert result.splits["text_to_image"] == alone
    every = rated(mira=(9, 5, 1), nils=(1, 5, 9))
    assert result.merged == agreement(ranked((*WORDS, *EDITS)), every, n_boot=0)


def test_ranks_of_other_samples_are_counted_and_do_not_count(folder: Path) -> None:
    whole = found(folder)
    write(folder, HUMAN, [*ranked((*WORDS, *EDITS)), *ranked(("gone",), ada=(3, 2, 1))])
    result = found(folder)
    assert result.left_out == {"human": {LeftOut.NOT_RELEASED: 3}}
    assert result.merged == whole.merged
    assert "3 rows of human do not count, not_released" in called(folder, "agree").output


def test_ranks_may_come_from_a_file(folder: Path) -> None:
    with (folder / "ranks.csv").open("w", encoding="utf-8", newline="") as sink:
        rows = csv.DictWriter(sink, list(HUMAN.columns))
        rows.writeheader()
        rows.writerows(ranked((*WORDS, *EDITS)))
    expected = found(folder).merged
    (root(folder) / "human.parquet").unlink()
    assert found(folder, human=folder / "ranks.csv").merged == expected


def test_people_alone_are_compared_where_nothing_was_rated_overall(folder: Path) -> None:
    write(folder, RATINGS, [row | {"rubric": "text_rendering"} for row in rated(mira=(9, 5, 1))])
    result = found(folder).merged
    assert result.judges.with_consensus == {}
    assert result.judges.people_with_others.value is not None
    assert "no rating by the rubric 'overall'" in called(folder, "agree").output


def test_the_file_holds_all_figures_and_no_folder(folder: Path) -> None:
    judges = {"mira": [], "nils": ["blank", "shuffled"], "otto": ["blank"]}
    audits = {"judges": {judge: {"failed": failed} for judge, failed in judges.items()}}
    (root(folder) / "audit.json").write_text(json.dumps(audits))
    result = found(folder, n_boot=50)
    text = result.path.read_text("utf-8")
    assert result.path == root(folder) / "agreement.json"
    assert str(folder) not in text
    read = json.loads(text)
    assert read["merged"]["judges"]["with_consensus"]["mira"]["tau"] == pytest.approx(1)
    assert list(read["splits"]) == ["image_to_image", "text_to_image"]
    assert read["failed_audit"] == {"nils": ["blank", "shuffled"], "otto": ["blank"]}
    write(folder, HUMAN, ranked((*WORDS, *EDITS))[::-1])
    assert found(folder, n_boot=50).path.read_text("utf-8") == text
    said = called(folder, "agree").output
    assert "nils (failed its audit: blank, shuffled)" in said
    assert "mira (failed" not in said
    assert "otto" not in said


@pytest.mark.parametrize(("protocol", "blocks"), [("published", 42), ("corrected", 14)])
def test_the_terminal_shows_order_test_and_agreement(
    folder: Path, protocol: str, blocks: int
) -> None:
    shown = called(folder, "agree", "--protocol", protocol, "--json")
    assert shown.exit_code == 0, shown.output
    expected = ["3 people ranked 14 samples: 42 rankings", protocol, f"{blocks} blocks\n"]
    expected += ["ash", "mira", "nils", "-1.000", "people"]
    for said in expected:
        assert said in shown.stderr
    assert json.loads(shown.stdout)["protocol"] == protocol


def test_what_people_could_not_rank_is_shown_and_names_are_shown_as_they_are(folder: Path) -> None:
    rows = ranked(WORDS, ada=(1, 2, 3), ben=(1, None, 2), cy=(None, None, None))
    write(folder, HUMAN, [row | {"rater": f"[red]{row['rater']}\x1b[2J"} for row in rows])
    output = called(folder, "agree").output
    assert "24 rankings, 12 of them incomplete, 12 times impossible" in output
    assert "[red]ada" in output
    assert "\x1b" not in output


def test_people_who_see_nothing_but_ties_have_nothing_to_agree_on(folder: Path) -> None:
    write(folder, HUMAN, ranked(WORDS, ada=(1, 1, 1), ben=(2, 2, 2)))
    shown = called(folder, "agree")
    assert shown.exit_code == 0, shown.output
    assert "nothing to test" in shown.output


def test_what_cannot_be_compared_is_one_line(folder: Path) -> None:
    with pytest.raises(ScoreError, match="'publish'; did you mean 'published'"):
        found(folder, protocol="publish")
    write(folder, HUMAN, ranked(("x", "y")))
    with pytest.raises(RunError, match=r"nothing of the benchmark in .*, and 18 ranks are of oth"):
        found(folder)
    (root(folder) / "human.parquet").unlink()
    with pytest.raises(RunError, match=r"and 0 ranks .*: run `echo-hf rank` .*, or name"):
        found(folder)
    assert not (root(folder) / "agreement.json").exists()


COLUMNS = ("sample_id", "rater", "system", "rank", "cannot_rank", "score")
ROWS = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("s", "Ada", "a, b", 1, None, None),
        ("s", "Ada", "c", None, True, None),
        ("0042", "Ada", "c", 2, False, None),
        ("0042", "Ben", "c", None, None, -0.5),
    )
]
JSONL = """{"sample_id": "s", "rater": "Ada", "system": "a, b", "rank": 1}

{"rater": "Ada", "sample_id": "s", "system": "c", "rank": null, "cannot_rank": true}
{"sample_id": "0042", "rater": "Ada", "system": "c", "rank": 2, "cannot_rank": false}
{"sample_id": "0042", "rater": "Ben", "system": "c", "score": -0.5}
"""
CSV = """sample_id,rater,rank,system,cannot_rank,score
s,Ada,1,"a, b",,
s,Ada,,c,true,
0042,Ada,2,c,false,
0042,Ben,,c,,-0.5
"""


@pytest.mark.parametrize(("name", "text"), [("r.jsonl", JSONL), ("R.CSV", "\ufeff" + CSV)])
def test_both_formats_give_the_same_table(tmp_path: Path, name: str, text: str) -> None:
    """In any order of columns, with a byte order mark or without; `0042` stays a text."""
    (tmp_path / name).write_text(text, "utf-8")
    found = read_human_file(tmp_path / name)
    assert found.schema == HUMAN.schema
    assert found.to_pylist() == ROWS


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.jsonl", JSONL + '{"sample_id": ', r"r\.jsonl' cannot be read"),
        ("r.jsonl", "[1]\n", "row 1: "),
        ("r.jsonl", '{"smple_id": "s"}', "unknown key 'smple_id'; did you mean 'sample_id'"),
        (
            "r.jsonl",
            JSONL.replace('"rank": 1', '"rank": true'),
            "row 1: rank is True: input should",
        ),
        (
            "r.jsonl",
            JSONL.replace('"rank": 2', '"rank": 0'),
            "row 3: rank is 0: input should be gr",
        ),
        (
            "r.jsonl",
            JSONL.replace("Ada", "A\\u001b[31m", 1),
            "row 1: rater is 'A.x1b.31m': expected",
        ),
        ("r.csv", CSV.replace("Ada,2", "Ada,second"), "row 3: rank is 'second': input should be a"),
        ("r.csv", CSV + "s,Ada,1,d,,,x\n", "row 5: unknown key '.too many fields.'"),
        ("r.csv", CSV + 's,"Ada,1,d,\n', r"r\.csv' cannot be read .unexpected end of data"),
        ("r.csv", "\udcff", r"r\.csv' cannot be read"),
        ("r.txt", CSV, r"r\.txt' holds no ranks: expected a file named \.jsonl or \.csv"),
    ],
)
def test_a_bad_line_is_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, "utf-8", "surrogateescape")
    with pytest.raises((RunError, TableError), match=said) as raised:
        read_human_file(tmp_path / name)
    assert "\n" not in str(raised.value)
