"""A build, its review, and the build after it; what stands in front of a reviewer."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

from echo_hf.builder.build import build, opened
from echo_hf.builder.review import (
    DOUBTFUL,
    PERSONAL,
    Fitness,
    OpenReview,
    Reviews,
    Triage,
    decide,
    open_reviews,
    triage,
)
from echo_hf.builder.update import why
from echo_hf.cli.check_view import show_open
from echo_hf.curate.edits import Edit
from echo_hf.errors import ReviewError, RunError
from echo_hf.hub.release import Release
from echo_hf.reasons import Review
from tests.curate.reviewed_rows_for_tests import SHOT, A, row
from tests.test_cli import echo_hf

TARGET = {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"}
CARD = "a card for Noor, noor@example.org, teal letters"
PROMPTS = (CARD, "a fox of folded paper, teal background", "a poster that says +1 650-253-0000")


def config(folder: Path, *prompts: str) -> Path:
    posts = [
        {"url": f"https://x.com/i/status/{number}", "text": f"Lumen Image! Prompt: {prompt}"}
        for number, prompt in enumerate(prompts)
    ]
    lines = [json.dumps({**post, "author": "mira_draws"}) for post in posts]
    (folder / "posts.jsonl").write_text("\n".join(lines), "utf-8")
    data: dict[str, Any] = {"name": "cards", "target": TARGET, "splits": {"cap": 2}}
    data |= {"posts": [{"source": "jsonl", "path": "posts.jsonl"}]}
    data |= {"engines": {"text": {"kind": "rules"}}}
    (folder / "config.yaml").write_text(yaml.safe_dump(data), "utf-8")
    return folder / "config.yaml"


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


def test_what_is_open_is_listed(runs: Path) -> None:
    reviews = open_reviews(runs.parent / "config.yaml", runs=runs)
    assert [one.prompt for one in reviews.open] == [PROMPTS[0], PROMPTS[2]]
    assert {one.reasons for one in reviews.open} == {("personal_data",)}
    assert (reviews.file, reviews.cut) == (runs / "cards" / "review.jsonl", ())


def test_the_next_build_follows_the_decisions(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    ids = waiting(runs)
    before = build(path, runs=runs)
    assert before.manifest.open_reviews == 2
    made = decide(path, keep=[ids[CARD]], remove=[ids[PROMPTS[2]]], note="asked her", runs=runs)
    with opened(path, runs, writes=False) as pipeline:
        changes = [(change.stage, change.field) for change in why(pipeline)]
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


def test_another_prompt_under_the_same_name_is_looked_at_again(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    ids = waiting(runs)
    decide(path, keep=[ids[CARD]], remove=[ids[PROMPTS[2]]], runs=runs)
    changed = (f"{CARD} on black", PROMPTS[1], "a poster that says hello")
    release = build(config(runs.parent, *changed), runs=runs)
    assert waiting(runs) == {changed[0]: ids[CARD], changed[2]: ids[PROMPTS[2]]}
    assert released(release) == {
        changed[0]: ["personal_data"],
        changed[1]: [],
        changed[2]: ["removed_earlier"],
    }


def test_an_unknown_sample_is_named_with_the_nearest(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    known = waiting(runs)[CARD]
    typed = known[:-1] + ("a" if known[-1] != "a" else "b")
    with pytest.raises(ReviewError, match=f"no sample '{typed}' in .*did you mean '{known}'"):
        decide(path, keep=[known, typed], runs=runs)
    with pytest.raises(ReviewError, match=f"'{known}' is to be kept and removed"):
        decide(path, keep=[known], remove=[known], runs=runs)
    assert not (runs / "cards" / "review.jsonl").exists()


def test_without_a_build_there_is_nothing_to_review(tmp_path: Path) -> None:
    path = config(tmp_path, *PROMPTS)
    for review in (open_reviews, decide):
        with pytest.raises(RunError, match="no samples to review: run `echo-hf build` first"):
            review(path, runs=tmp_path / "runs")


def printed(show: Any, *arguments: Any) -> str:
    out = io.StringIO()
    show(Console(file=out, width=60), *arguments)
    return out.getvalue()


def test_a_hostile_prompt_is_only_text() -> None:
    prompt = "\x1b[31m[bold]draw\u202e\n@noor[/bold] " + "x" * 500
    one = OpenReview("an-id", ("personal_data",), prompt, (Path("runs/cards/pictures/aa/aab"),))
    text = printed(show_open, Reviews((one,), Path("review.jsonl"), (3,)), Path("c.yaml"))
    lines = text.splitlines()
    assert lines[0] == "review.jsonl:3 was cut short and does not count: decide again"
    assert lines[1] == "an-id  personal_data"
    assert lines[2].startswith("  [31m[bold]draw @noor[/bold] xxx")
    assert len(lines[2]) == 162
    assert lines[3:] == [
        "  runs/cards/pictures/aa/aab",
        "1 sample is open; decide with: echo-hf review c.yaml --keep ID --remove ID",
    ]


def test_the_command_lists_and_decides(runs: Path) -> None:
    folder = runs.parent
    ids = waiting(runs)
    listed = echo_hf("review", "config.yaml", cwd=folder)
    given = ["--keep", ids[CARD], "--remove", ids[PROMPTS[2]], "--note", "asked her"]
    decided = echo_hf("review", "config.yaml", *given, cwd=folder)
    wrong = echo_hf("review", "config.yaml", "--keep", "nobody", cwd=folder)
    assert listed.stdout.count("personal_data") == 2
    assert f"  {CARD}" in listed.stdout
    assert decided.stdout.splitlines()[0].split() == ["keep", ids[CARD]]
    assert waiting(runs) == {}
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "no sample 'nobody' in the last build" in wrong.stderr


def test_an_edit_is_built_kept_and_withdrawn(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    name = waiting(runs)[CARD]
    clean = "a card for Noor, teal letters"
    decide(path, edits={name: Edit(clean)}, reviewer="ann", runs=runs)
    assert released(build(path, runs=runs))[clean] == []
    decide(path, keep=[name], runs=runs)
    assert released(build(path, runs=runs))[clean] == []
    decide(path, flag=[name], note="is that her name?", runs=runs)
    assert released(build(path, runs=runs))[clean] == ["second_look"]
    decide(path, withdraw=[name], runs=runs)
    assert released(build(path, runs=runs))[CARD] == ["personal_data"]


def test_an_edit_that_cannot_be_writes_nothing(runs: Path) -> None:
    path = runs.parent / "config.yaml"
    ids = waiting(runs)
    with pytest.raises(ReviewError, match="has no word"):
        decide(path, keep=[ids[PROMPTS[2]]], edits={ids[CARD]: Edit(" ")}, runs=runs)
    assert not (runs / "cards" / "review.jsonl").exists()


def test_the_command_flags_withdraws_and_exports(runs: Path) -> None:
    folder, ids = runs.parent, waiting(runs)
    flagged = echo_hf("review", "config.yaml", "--flag", ids[CARD], "--reviewer", "ann", cwd=folder)
    nothing = echo_hf("review", "config.yaml", "--gold", "gold", cwd=folder)
    withdrawn = echo_hf("review", "config.yaml", "--withdraw", ids[CARD], cwd=folder)
    echo_hf("review", "config.yaml", "--keep", ids[CARD], cwd=folder)
    gold = echo_hf("review", "config.yaml", "--gold", "gold", cwd=folder)
    assert flagged.stdout.split()[:2] == ["flag", ids[CARD]]
    assert (nothing.returncode, nothing.stderr.count("\n")) == (2, 1)
    assert "no sample is kept or removed as it is now" in nothing.stderr
    assert withdrawn.stdout.split()[:2] == ["withdraw", ids[CARD]]
    assert (
        gold.stdout.splitlines()[0] == "1 samples of 1 threads, and the roles of 0 images, in gold"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"note": "x" * 2001}, "note"),
        ({"reviewer": ""}, "reviewer"),
        ({"reviewer": "x" * 101}, "reviewer"),
        ({"note": "half \ud800"}, "note"),
    ],
)
def test_a_note_that_cannot_be_written_is_one_line(
    runs: Path, options: dict[str, str], said: str
) -> None:
    path, name = runs.parent / "config.yaml", waiting(runs)[CARD]
    with pytest.raises(ReviewError, match=rf"^sample '{name}': {said}") as caught:
        decide(path, keep=[name], runs=runs, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert not (runs / "cards" / "review.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--note", "hm"], "--note and --reviewer go with a decision"),
        (["--reviewer", "ann"], "--note and --reviewer go with a decision"),
        (["--app", "--keep", "x"], "--keep and --app are two things"),
        (["--gold", "g", "--flag", "x"], "--flag and --gold are two things"),
        (["--people", "ann"], "--people and --anyone go with --app"),
    ],
)
def test_what_would_be_left_undone_is_refused(runs: Path, options: list[str], said: str) -> None:
    done = echo_hf("review", "config.yaml", *options, cwd=runs.parent)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not (runs / "cards" / "review.jsonl").exists()


CALM = {"safety": {"flagged": False, "categories": [], "model": "guard"}, "has_nsfw": False}
HAZARD = {"flagged": True, "categories": ["S1", "S8"], "model": "guard"}


def told(*notices: Any, duplicate_of: str | None = None, **values: Any) -> Triage:
    return triage(row(**{**CALM, **values}), notices, duplicate_of)


def test_a_sample_with_nothing_to_see_is_for_the_benchmark() -> None:
    assert told() == Triage(Fitness.BENCHMARK, ())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quality": "Trash"}, "Trash"),
        ({"has_nsfw": True, "safety": HAZARD}, "flagged by the safety model: S1, S8"),
        ({"duplicate_of": "two"}, "equal to sample two"),
        ({"quality": "Analysis"}, "for analysis only"),
    ],
)
def test_what_cannot_be_in_the_benchmark_is_to_discard(values: dict[str, Any], said: str) -> None:
    found = told(**values)
    assert found.verdict == Fitness.DISCARD
    assert said in found.look_at[0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"safety": None}, "no safety model has seen it"),
        ({"safety": HAZARD}, "hazards named: S1, S8"),
        ({"output_images": []}, "no output"),
        ({"prompt_modified": True}, "words that nobody wrote"),
        ({"prompt_fill_blank": True}, "blanks were filled in"),
        ({"prompt": "fox"}, "a prompt of 1 word: "),
        ({"prompt": "fox " * 301}, "a prompt of 301 words"),
        ({"input_images": [A] * 5}, "5 inputs"),
        ({"screenshot": SHOT}, "not cut: draw the boxes"),
        ({"screenshot": SHOT, "is_screenshot": True}, "check the boxes"),
        ({"review": ["may_show_minor"]}, "may be under 18"),
        ({"review": ["second_look"], "quality": "Analysis"}, "somebody left it to you"),
    ],
)
def test_what_a_person_has_to_look_at_is_named(values: dict[str, Any], said: str) -> None:
    found = told(**values)
    assert found.verdict == Fitness.MANUAL
    assert len(found.look_at) == 1
    assert said in found.look_at[0]


def test_a_script_without_spaces_has_no_short_prompts() -> None:
    assert told(prompt="一只橘猫坐在窗台上看雨").verdict == Fitness.BENCHMARK


def test_doubts_on_the_way_are_named_once() -> None:
    notices = [("two_roles", "x"), ("two_roles", "y"), ("masked_e_mail", None)]
    found = told(*notices)
    assert found.look_at == (next(one.meaning for one in DOUBTFUL if one == "two_roles"),)


def test_every_reason_for_review_has_words() -> None:
    assert set(PERSONAL) == {str(one) for one in Review}


def test_the_most_doubtful_come_first() -> None:
    doubts = (
        told(safety=None, prompt_modified=True),
        told(safety=None),
        told(),
        told(quality="Trash"),
    )
    assert sorted(doubts, key=lambda one: one.turn) == list(doubts)
