"""What people are asked by a check, the page as HTML, and the table; without a browser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from echo_hf.apps.label import (
    APP,
    LabelApp,
    LabelPage,
    OutputToLabel,
    open_labels,
    render_label_page,
)
from echo_hf.cli import app
from echo_hf.cli.build_view import show_labels
from echo_hf.errors import ReviewError, RunError, ScoreError
from echo_hf.hub.facts import LeftOut
from echo_hf.hub.run_tables import select_released_tables
from echo_hf.judging.score import score
from echo_hf.tables import LABELS, OUTPUTS, SAMPLES
from tests.apps.label.labelled_run import CHECK, HOSTILE, SYSTEMS, kept_check, labelled_run
from tests.judging.run_for_tests import digest_of, output, put, root, run, sample, stripes, write
from tests.report.run_data_for_tests import Parsed
from tests.systems.test_checks import make

Row = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    labelled_run(tmp_path)
    return tmp_path


def opened(folder: Path, name: str = "cast", **options: Any) -> LabelApp:
    return open_labels(folder / "evaluation.yaml", name, runs=folder / "runs", **options)


def answer(labels: LabelApp, person: str, kind: str) -> LabelPage:
    shown = labels.build_page(person).output
    assert shown is not None
    return labels.act(person, {"kind": kind, "subject": shown.token})


def rows(folder: Path) -> list[Row]:
    found: list[Row] = pq.read_table(root(folder) / "labels.parquet").to_pylist()
    return found


def labelled(output: OutputToLabel, rater: str, said: str) -> Row:
    key = dict(zip(("sample_id", "system"), output.key, strict=True))
    said_of = {"check": CHECK, "rater": rater, "answer": said, "output_sha256": output.image}
    return {**key, **said_of}


def html(labels: LabelApp, person: str = "ann") -> str:
    return render_label_page(labels, labels.build_page(person), lambda digest: f"/image/{digest}")


def test_an_answer_is_a_row_about_the_image_that_was_shown(folder: Path) -> None:
    labels = opened(folder)
    shown = labels.build_page("ann").output
    assert shown is not None
    answer(labels, "ann", "yes")
    row = labelled(shown, "ann", "yes")
    assert rows(folder) == [row]
    assert pq.read_schema(root(folder) / "labels.parquet").equals(LABELS.schema)
    # Another answer of the same person takes its place; that of somebody else stands beside it.
    labels.act("ann", {"kind": "no", "subject": shown.token})
    labels.act("ben", {"kind": "unclear", "subject": shown.token})
    assert rows(folder) == [{**row, "answer": "no"}, {**row, "rater": "ben", "answer": "unclear"}]


def test_what_is_taken_back_is_asked_again(folder: Path) -> None:
    labels = opened(folder)
    first = labels.build_page("ann").output
    after = answer(labels, "ann", "no")
    assert after.output != first
    assert (after.done, len(after.actions)) == (1, 1)
    back = labels.act("ann", {"kind": "undo"})
    assert (back.output, back.done, back.actions) == (first, 0, [])
    assert rows(folder) == []
    assert labels.act("ann", {"kind": "undo"}) == back


def test_what_a_page_cannot_ask_for_is_nothing(folder: Path) -> None:
    labels = opened(folder)
    token = labels.outputs[0].token
    for action in (
        {},
        {"kind": "yes"},
        {"kind": "yes", "subject": "0" * 32},
        {"kind": "yes", "subject": [token]},
        {"kind": ["yes"], "subject": token},
        {"kind": "maybe", "subject": token},
        {"kind": None, "subject": token},
    ):
        labels.act("ann", action)
    assert labels.log.read_events(APP) == ()
    assert not (root(folder) / "labels.parquet").exists()


def test_the_order_depends_on_names_alone_and_favors_no_system(folder: Path) -> None:
    outputs = opened(folder).outputs
    assert len(outputs) == 2 * 41
    assert [one.key for one in opened(folder).outputs] == [one.key for one in outputs]
    (folder / "again").mkdir()
    labelled_run(folder / "again", every=3)  # the judge says something else
    assert [one.key for one in opened(folder / "again").outputs] == [one.key for one in outputs]
    first = Counter(one.system for one in outputs[:40])
    low, high = stats.hypergeom(82, 41, 40).ppf([0.001, 0.999])
    assert low <= first["quixel"] <= high
    names = [one.task.sample_id for one in outputs if one.system == "quixel"]
    assert names not in (sorted(names), sorted(names)[::-1])


def test_it_counts_down_to_what_the_width_takes(folder: Path) -> None:
    """At least 30 of each split and system, or all where there are fewer."""
    labels = opened(folder, half_width=0.9, systems=["quixel"])
    view = labels.build_page("ann")
    assert (view.done, view.missing) == (0, 30 + 1)
    for left in range(30, 0, -1):
        view = answer(labels, "ann", "no")
        assert view.missing == left
        assert f"{left} answer{'' if left == 1 else 's'} missing for ±0.9" in html(labels)
    view = answer(labels, "ann", "no")
    assert (view.output, view.missing, view.done) == (None, 0, 31)
    assert "There are answers enough for ±0.9" in html(labels)
    narrow = opened(folder, half_width=0.001, systems=["quixel"])
    assert narrow.build_page("ann").missing == 41 - 31


def test_an_unclear_output_is_left_to_somebody_else(folder: Path) -> None:
    labels = opened(folder)
    before = labels.build_page("ann")
    after = answer(labels, "ann", "unclear")
    assert (after.done, after.missing) == (0, before.missing)
    assert after.output != before.output
    assert labels.build_page("ben").output == before.output


def test_two_people_are_not_asked_about_the_same_at_once(folder: Path) -> None:
    labels = opened(folder)
    shown = [labels.build_page(person).output for person in ("ann", "ben")]
    assert len({one.task.sample_id for one in shown if one}) == 2
    assert labels.build_page("ann").output == shown[0]
    answer(labels, "ann", "yes")
    # What one has answered is labelled: the other goes on elsewhere.
    assert answer(labels, "ben", "yes").output not in shown


def test_texts_of_posts_are_text_and_the_page_is_blind(folder: Path) -> None:
    check = make(
        status="kept", question=f"Is it tinted? {HOSTILE}", certificates=kept_check().certificates
    )
    labels = LabelApp(
        root(folder),
        check,
        opened(folder).groups,
        tuple(one for one in opened(folder).outputs if one.task.sample_id == HOSTILE),
        0.1,
    )
    page = html(labels)
    found = Parsed(page)
    assert found.words.count(HOSTILE) == 2
    assert not [name for _, named in found.tags for name in named if name.startswith("on")]
    assert "script" not in {tag for tag, _ in found.tags}
    view = labels.build_page("ann")
    assert view.output is not None
    shown = [named["src"] for tag, named in found.tags if tag == "img"]
    (given,) = view.output.task.inputs
    assert shown == [f"/image/{given.sha256}", f"/image/{view.output.image}"]
    assert [name for name in (*SYSTEMS, "mira") if name in page] == []
    board = next(named for _, named in found.tags if "board" in (named.get("class") or ""))
    assert board["data-subject"] == view.output.token


def test_labels_from_elsewhere_stay(folder: Path) -> None:
    labels = opened(folder)
    first, second = labels.outputs[:2]
    elsewhere = [labelled(first, "zoe", "yes"), labelled(second, "ann", "yes")]
    write(folder, LABELS, elsewhere)
    assert labels.build_page("ann").done == 2
    labels.act("ann", {"kind": "no", "subject": second.token})
    assert {(row["rater"], row["answer"]) for row in rows(folder)} == {
        ("zoe", "yes"),
        ("ann", "no"),
    }
    labels.act("ann", {"kind": "undo"})
    assert rows(folder) == elsewhere[:1]


def test_a_label_of_an_image_that_was_drawn_anew_does_not_count(folder: Path) -> None:
    labels = opened(folder)
    shown = labels.build_page("ann").output
    assert shown is not None
    answer(labels, "ann", "yes")
    path = root(folder) / "outputs.parquet"
    outputs = pq.read_table(path).to_pylist()
    for row in outputs:
        if (row["sample_id"], row["system"]) == shown.key:
            row["image"] = put(folder, stripes((200, 100, 50)))
    write(folder, OUTPUTS, outputs)
    ratings = root(folder) / "ratings.parquet"
    table = pq.read_table(ratings)
    none = pa.nulls(table.num_rows, pa.string())  # of ratings that name no image
    index = table.column_names.index("output_sha256")
    pq.write_table(table.set_column(index, "output_sha256", none), ratings)
    anew = opened(folder)
    view = anew.build_page("ann")
    assert view.done == 0
    assert view.output is not None
    assert view.output.key == shown.key
    scored = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    assert scored.left_out["labels"] == {LeftOut.OTHER_OUTPUT: 1}


def test_labels_give_the_rate_that_people_say(folder: Path) -> None:
    answers = {"quixel": "yes", "zorblatt": "no"}
    outputs = opened(folder).outputs
    write(folder, LABELS, [labelled(one, "zoe", answers[one.system]) for one in outputs])
    scored = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    (split,) = [one for one in scored.splits if one.split == "text_to_image"]
    rates = {rate.system: rate for rate in split.checks}
    # All are of one kind: the exact interval of 40 of 40, and of none.
    exact = stats.binomtest(40, 40).proportion_ci(method="exact")
    assert (rates["quixel"].method, rates["quixel"].labels) == ("exact", 40)
    assert rates["quixel"].interval == pytest.approx((exact.low, exact.high))
    assert (rates["zorblatt"].value, rates["zorblatt"].raw) == (0.0, 0.25)
    assert scored.left_out.get("labels") is None


def test_who_labelled_is_never_released(folder: Path) -> None:
    answer(opened(folder), "ann", "yes")
    released = [sample(f"word{number:02}", []) for number in range(40)]
    samples = Dataset(pa.Table.from_pylist(released, SAMPLES.features.arrow_schema))
    tables = select_released_tables(root(folder), {"text_to_image": samples})
    assert "outputs" in tables.configs
    assert "labels" not in tables.configs


def test_only_outputs_whose_image_is_there_are_asked_about(folder: Path) -> None:
    before = opened(folder)
    lost = before.outputs[0]
    (path,) = (root(folder) / "pictures").glob(f"*/{lost.image}")
    path.unlink()
    after = opened(folder)
    assert lost.image not in {one.image for one in after.outputs}
    assert sum(len(group.answers) for group in after.groups) == len(after.outputs)


def test_a_kept_check_is_chosen_by_name_or_version(tmp_path: Path) -> None:
    old, new = make(status="replaced"), kept_check(version=2)
    fallen = make("words", status="fell")
    labelled_run(tmp_path, checks=(old, new, fallen))
    for name in ("words", "cast@1", "casts"):
        with pytest.raises(RunError, match=f"kept check '{name}'.*cast@2"):
            opened(tmp_path, name)
    with pytest.raises(RunError, match="no output is there to label by check 'cast@2'"):
        opened(tmp_path, "cast")  # its ratings are of version 1
    (tmp_path / "other").mkdir()
    labelled_run(tmp_path / "other")
    assert opened(tmp_path / "other", "cast@1").check == opened(tmp_path / "other", "cast").check


def test_what_cannot_be_labelled_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"system 'quixl'.*quixel"):
        opened(folder, systems=["quixl"])
    for width in (0, 1, -0.1, float("nan")):
        with pytest.raises(ScoreError, match=r"--width is .*: expected half an interval"):
            opened(folder, half_width=width)
    bare = tmp_path / "bare"
    bare.mkdir()
    run(bare, {}, ["word"])
    write(bare, OUTPUTS, [output("word", "quixel", sample_digest=digest_of("word"))])
    with pytest.raises(RunError, match="kept check 'cast'"):
        opened(bare)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--check", "cast"], "--people, --anyone and --check go with --app: add it"),
        (["--app", "--width", "0.1"], "--systems and --width go with --check: add it"),
        (["--app", "--systems", "quixel"], "--systems and --width go with --check: add it"),
        (["--check", "cast", "--app", "--keep", "s"], "--keep and --app are two things"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, options: list[str], problem: str
) -> None:
    config = str(folder / "evaluation.yaml")
    ended = CliRunner().invoke(app, ["review", config, *options])
    assert isinstance(ended.exception, ReviewError)
    assert problem in str(ended.exception)


def test_the_terminal_says_how_many_are_missing(folder: Path) -> None:
    labels = opened(folder, half_width=0.9)
    for _ in range(3):
        answer(labels, "ann", "no")
    console = Console(width=120)
    with console.capture() as captured:
        show_labels(console, labels)
    told = captured.get()
    assert "cast@1: Is the whole picture tinted?" in told
    counts = {tuple(line.split()) for line in told.splitlines()[2:]}
    assert {row[:3] for row in counts} == {
        (system, split, count)
        for system in SYSTEMS
        for split, count in (("text_to_image", "40"), ("image_to_image", "1"))
    }
    assert sum(int(row[3]) for row in counts) == 3
    assert all(int(row[3]) + int(row[4]) == (30 if row[2] == "40" else 1) for row in counts)
