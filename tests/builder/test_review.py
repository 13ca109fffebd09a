"""A build, its review, and the build after it; what stands in front of a reviewer."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from echo_hf.builder.build import build, open_run
from echo_hf.builder.review import (
    REASON_MEANINGS,
    Fitness,
    OpenReview,
    OpenReviews,
    Triage,
    decide,
    open_reviews,
    triage,
)
from echo_hf.builder.update import explain_changes
from echo_hf.cli.build_view import show_open
from echo_hf.curate.decisions import DECISIONS_FILE
from echo_hf.curate.edits import SampleEdit
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ReviewError, RunError
from echo_hf.hub.release import Release
from echo_hf.reasons import find_meaning
from echo_hf.samples.sample import Review
from tests.curate.reviewed_rows_for_tests import SHOT, A, row
from tests.errors_for_tests import said_by
from tests.recorded_as_model import KIND, RecordedAsModel, X, bundled_posts, config_over
from tests.test_cli import echo_hf

MODEL = {"kind": KIND, "model": "one"}
CARD = "a card for Noor, noor@example.org, teal letters"
PROMPTS = (CARD, "a fox of folded paper, teal background", "a poster that says +1 650-253-0000")


def config(folder: Path, *prompts: str) -> Path:
    posts = [
        {"url": f"{X}i/status/{number}", "text": f"Lumen Image! Prompt: {prompt}", "author": "mira"}
        for number, prompt in enumerate(prompts)
    ]
    engines = {"text": {"kind": "rules"}}
    return config_over(folder, posts, "rules", name="cards", splits={"cap": 2}, engines=engines)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(config(folder, *PROMPTS), runs=folder / "runs")
    return folder


@pytest.fixture
def runs(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "copy") / "runs"


def waiting(runs: Path) -> dict[str, str]:
    reviews = open_reviews(runs.parent / "config.yaml", runs=runs)
    return {one.prompt: one.id for one in reviews.open}


def released(release: Release, name: str = "analysis") -> dict[str, list[str]]:
    rows = release.datasets[name]
    return dict(zip(rows["prompt"], rows["review"], strict=True))


def rejected(runs: Path) -> list[tuple[str, str]]:
    rows = pq.read_table(runs / "cards" / "stages" / "splits" / "rejects.parquet").to_pylist()
    return [(row["prompt"], row["_reason"]) for row in rows]


def test_the_next_build_follows_the_decisions(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    ids = waiting(runs)
    reviews, before = open_reviews(path, runs=runs), build(path, runs=runs)
    assert [one.prompt for one in reviews.open] == [PROMPTS[0], PROMPTS[2]]
    assert {one.reasons for one in reviews.open} == {("personal_data",)}
    assert (reviews.file, reviews.cut) == (runs / "cards" / "review.jsonl", ())
    assert before.manifest.open_reviews == 2
    made = decide(path, keep=[ids[CARD]], remove=[ids[PROMPTS[2]]], note="asked her", runs=runs)
    with open_run(path, runs, writes=False) as run:
        changes = [(change.stage, change.field) for change in explain_changes(run)]
    after = build(path, runs=runs)
    assert [(one.decision, one.reasons, one.note) for one in made] == [
        ("keep", ("personal_data",), "asked her"),
        ("remove", ("personal_data",), "asked her"),
    ]
    assert changes == [("splits", f"decisions.{one}") for one in sorted(ids.values())]
    assert released(after) == {CARD: [], PROMPTS[1]: []}
    assert rejected(runs) == [(PROMPTS[2], "removed_in_review")]
    assert (after.manifest.open_reviews, waiting(runs)) == (0, {})
    drawn = set(released(before, "text_to_image"))
    assert set(released(after, "text_to_image")) == drawn - {PROMPTS[2]}


def test_what_is_doubtful_comes_first_and_a_person_lets_it_in(tmp_path: Path) -> None:
    asked = "Turn this photo into a stamp, teal background"
    path, runs = config(tmp_path, *PROMPTS, asked), tmp_path / "runs"
    before, found = build(path, runs=runs), open_reviews(path, runs=runs).open
    assert [one.reasons for one in found] == [("lacks_input",), *[("personal_data",)] * 2]
    assert found[0].prompt == asked
    assert dict(before.stats["funnel"]["splits"]["noted"]) == {"lacks_input": 1}
    assert asked not in released(before, "text_to_image")
    assert before.manifest.open_reviews == 2  # a doubt is in nobody's way who publishes
    assert "not be the task that they seem to be: lacks\\_input 1.**" in (
        before.path / "README.md"
    ).read_text("utf-8")
    decide(path, keep=[found[0].id], remove=[one.id for one in found[1:]], runs=runs)
    after = build(path, runs=runs)
    rows = {row["prompt"]: row["doubts"] for row in after.datasets["text_to_image"]}
    assert rows[asked] == []
    assert "**Samples that may not be" not in (after.path / "README.md").read_text("utf-8")


SHOWN = ("prompt", "input_images", "output_images", "input_bboxs", "output_bboxs", "doubts")


def screenshots_of(release: Release) -> dict[str, tuple[Any, ...]]:
    """What was made of each sample with a screenshot, by its id; images as their bytes."""
    shown = {}
    for sample in release.datasets["analysis"].with_format("arrow").to_list():
        if sample["screenshot"]:
            shown[sample["id"]] = tuple(sample[name] for name in SHOWN)
    return shown


def test_one_decision_reads_the_boxes_of_a_model_whose_convention_was_assumed(
    tmp_path: Path,
) -> None:
    """The bundled answers are pixels of small files, and the model is asked for thousandths."""
    RecordedAsModel().use()
    held = config_over(tmp_path / "held", bundled_posts(), engines={"text": MODEL})
    said = {**MODEL, "coordinates": "abs_resized"}
    known = config_over(tmp_path / "known", bundled_posts(), engines={"text": said})
    before, runs = build(held, runs=tmp_path / "held/runs"), tmp_path / "held/runs"
    cut = screenshots_of(build(known, runs=tmp_path / "known/runs"))

    assert len(cut) > 2
    waiting = screenshots_of(before)
    assert all(row[3] == row[4] == [] for row in waiting.values())
    assert all("assumed_boxes" in row[5] for row in waiting.values())
    drawn = {name for split in BENCHMARKS for name in before.datasets[split]["id"]}
    assert drawn.isdisjoint(waiting)
    assert "assumed_boxes" in open_reviews(held, runs=runs).open[0].reasons

    told = io.StringIO()
    show_open(Console(file=told, width=300), open_reviews(held, runs=runs), str(held))
    assert "wait for a convention: echo-hf review" in (told.getvalue())

    decide(held, boxes="rel_1000", runs=runs)  # which is wrong, and can be corrected
    decide(held, boxes="abs_resized", note="as check-engine says", runs=runs)
    assert screenshots_of(build(held, runs=runs)) == cut
    assert not any("assumed_boxes" in one.reasons for one in open_reviews(held, runs=runs).open)
    with pytest.raises(ReviewError, match="'rel_100'; did you mean 'rel_1000'"):
        decide(held, boxes="rel_100", runs=runs)
    (first, *others), (file,) = sorted(waiting), runs.rglob(DECISIONS_FILE)
    decide(held, flag=[first], reviewer="mira", runs=runs)
    again = decide(held, boxes="rel_1000", runs=runs)
    assert {one.id for one in again} <= set(others)  # hers is not undone
    decide(held, flag=others, reviewer="mira", runs=runs)
    kept = file.read_bytes()
    with pytest.raises(ReviewError, match="none can be cut as rel_1000: somebody decided"):
        decide(held, boxes="rel_1000", runs=runs)
    assert file.read_bytes() == kept
    with pytest.raises(ReviewError, match="no boxes wait"):
        decide(known, boxes="rel_1000", runs=tmp_path / "known/runs")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep": ["ID", "IDx"]}, "no sample 'IDx' in the last build"),
        ({"keep": ["ID"], "remove": ["ID"]}, "'ID' is given to keep and to remove"),
        ({"keep": ["ID"], "edits": {"ID": SampleEdit(" ")}}, "has no word"),
        ({"keep": ["ID"], "note": "half \ud800"}, "sample 'ID': note"),
        ({"keep": ["ID"], "reviewer": ""}, "sample 'ID': reviewer"),
    ],
)
def test_what_cannot_be_decided_is_one_line_and_not_written(
    built: Path, given: dict[str, Any], said: str
) -> None:
    runs = built / "runs"
    known = waiting(runs)[CARD]
    for name, value in given.items():
        if isinstance(value, list):
            given = {**given, name: [one.replace("ID", known) for one in value]}
        elif isinstance(value, dict):
            given = {**given, name: dict.fromkeys([known], *value.values())}
    told = said_by(ReviewError, decide, built / "config.yaml", **given, runs=runs)
    assert said.replace("ID", known) in told
    assert not (runs / "cards" / "review.jsonl").exists()


def test_without_a_build_there_is_nothing_to_review(tmp_path: Path) -> None:
    path = config(tmp_path, *PROMPTS)
    for review in (open_reviews, decide):
        with pytest.raises(RunError, match="no samples to review: run `echo-hf build` first"):
            review(path, runs=tmp_path / "runs")


def test_a_hostile_prompt_is_only_text() -> None:
    prompt = "\x1b[31m[bold]draw\u202e\n@noor[/bold] " + "x" * 500
    one = OpenReview("an-id", ("personal_data",), prompt, (Path("runs/cards/pictures/aa/aab"),))
    out = io.StringIO()
    reviews = OpenReviews((one,), Path("review.jsonl"), (3,))
    show_open(Console(file=out, width=60), reviews, "c.yaml")
    lines = out.getvalue().splitlines()
    assert lines[0] == "review.jsonl:3 was cut short and does not count: decide again"
    assert lines[1] == "an-id  personal_data"
    assert lines[2].startswith("  [31m[bold]draw @noor[/bold] xxx")
    assert len(lines[2]) == 162
    assert lines[3:] == [
        "  runs/cards/pictures/aa/aab",
        "1 sample is open; decide with: echo-hf review c.yaml --keep ID --remove ID",
    ]


def test_the_command_lists_decides_and_exports(runs: Path) -> None:
    ids = waiting(runs)
    card, poster = ids[CARD], ids[PROMPTS[2]]

    def review(*given: str) -> list[str]:
        done = echo_hf("review", "config.yaml", *given, cwd=runs.parent)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def refused(*given: str) -> str:
        done = echo_hf("review", "config.yaml", *given, cwd=runs.parent)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        return done.stderr

    assert [line for line in review() if CARD in line] == [f"  {CARD}"]
    assert "no sample 'nobody' in the last build" in refused("--keep", "nobody")
    assert review("--flag", card, "--reviewer", "ann")[0].split() == ["flag", card]
    assert "no sample is kept or removed as it is now" in refused("--gold", "gold")
    assert review("--withdraw", card)[0].split() == ["withdraw", card]
    review("--keep", card, "--remove", poster, "--note", "asked her")
    assert waiting(runs) == {}
    made = review("--gold", "gold")[0]
    assert made == "2 samples of 2 threads, and the roles of 0 images, in gold"


def test_an_edit_is_built_kept_and_withdrawn(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    name = waiting(runs)[CARD]
    clean = "a card for Noor, teal letters"
    decide(path, edits={name: SampleEdit(clean)}, reviewer="ann", runs=runs)
    assert released(build(path, runs=runs))[clean] == []
    decide(path, keep=[name], runs=runs)
    assert released(build(path, runs=runs))[clean] == []
    decide(path, flag=[name], note="is that her name?", runs=runs)
    assert released(build(path, runs=runs))[clean] == ["second_look"]
    decide(path, withdraw=[name], runs=runs)
    assert released(build(path, runs=runs))[CARD] == ["personal_data"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--note", "hm"], "--note and --reviewer go with a decision"),
        (["--app", "--keep", "x"], "--keep and --app are two things"),
        (["--gold", "g", "--flag", "x"], "--flag and --gold are two things"),
        (["--people", "ann"], "--people, --anyone and --check go with --app"),
    ],
)
def test_what_would_be_left_undone_is_refused(built: Path, options: list[str], said: str) -> None:
    done = echo_hf("review", "config.yaml", *options, cwd=built)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not (built / "runs" / "cards" / "review.jsonl").exists()


CALM = {"safety": {"flagged": False, "categories": [], "model": "guard"}, "has_nsfw": False}
HAZARD = {"flagged": True, "categories": ["S1", "S8"], "model": "guard"}


def told(*notices: Any, duplicate_of: str | None = None, **values: Any) -> Triage:
    return triage(row(**{**CALM, **values}), notices, duplicate_of)


@pytest.mark.parametrize(
    ("values", "verdict", "said"),
    [
        ({}, Fitness.BENCHMARK, None),
        ({"prompt": "一只橘猫坐在窗台上看雨"}, Fitness.BENCHMARK, None),  # written without spaces
        ({"quality": "Trash"}, Fitness.DISCARD, "Trash"),
        ({"has_nsfw": True, "safety": HAZARD}, Fitness.DISCARD, "by the safety model: S1, S8"),
        ({"duplicate_of": "two"}, Fitness.DISCARD, "equal to sample two"),
        ({"quality": "Analysis"}, Fitness.DISCARD, "for analysis only"),
        ({"safety": None}, Fitness.MANUAL, "no safety model has seen it"),
        ({"safety": HAZARD}, Fitness.MANUAL, "hazards named: S1, S8"),
        ({"output_images": []}, Fitness.MANUAL, "no output"),
        ({"prompt_modified": True}, Fitness.MANUAL, "words that nobody wrote"),
        ({"prompt_fill_blank": True}, Fitness.MANUAL, "blanks were filled in"),
        ({"prompt": "fox"}, Fitness.MANUAL, "a prompt of 1 word: "),
        ({"prompt": "fox " * 301}, Fitness.MANUAL, "a prompt of 301 words"),
        ({"input_images": [A] * 5}, Fitness.MANUAL, "5 inputs"),
        ({"doubts": ["lacks_input"]}, Fitness.MANUAL, "an image that came with it"),
        ({"doubts": ["lacks_input"], "quality": "Analysis"}, Fitness.DISCARD, "for analysis only"),
        ({"screenshot": SHOT}, Fitness.MANUAL, "not cut: draw the boxes"),
        ({"screenshot": SHOT, "doubts": ["screenshot_whole"]}, Fitness.MANUAL, "draw the boxes"),
        ({"screenshot": SHOT, "is_screenshot": True}, Fitness.MANUAL, "check the boxes"),
        ({"review": ["may_show_minor"]}, Fitness.MANUAL, "may be under 18"),
        ({"review": ["second_look"], "quality": "Analysis"}, Fitness.MANUAL, "somebody left it"),
    ],
)
def test_what_a_sample_is_fit_for_and_what_to_look_at(
    values: dict[str, Any], verdict: Fitness, said: str | None
) -> None:
    found = told(**values)
    assert found.verdict == verdict
    assert len(found.look_at) == (said is not None)
    assert (said or "") in "".join(found.look_at)


def test_doubts_on_the_way_are_named_once() -> None:
    notices = [("two_roles", "x"), ("two_roles", "y"), ("masked_e_mail", None)]
    found = told(*notices)
    assert found.look_at == (find_meaning("two_roles"),)


def test_every_reason_for_review_has_words() -> None:
    assert set(REASON_MEANINGS) == {str(one) for one in Review}


def test_the_most_doubtful_come_first() -> None:
    doubts = (
        told(doubts=["lacks_input"]),
        told(safety=None, prompt_modified=True),
        told(safety=None),
        told(),
        told(quality="Trash"),
    )
    assert sorted(doubts, key=lambda one: one.turn) == list(doubts)
