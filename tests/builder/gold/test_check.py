"""A whole check: the stages' real code between gold input and gold answers, and its command."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.builder.gold.check import CheckResult, check_engine, read_gold_setting
from echo_hf.builder.gold.export import NotGold, export_gold
from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.review import decide
from echo_hf.config.checks import EngineChoice
from echo_hf.curate.edits import SampleEdit
from echo_hf.engines.base import Completion, Request, Text, Usage, register
from echo_hf.engines.recorded import RecordedEngine
from echo_hf.errors import ConfigError, EngineError, GoldError, SourceError, StageError
from tests.apps.review.reviewed_run import CHAIR, LAKE, MAIL, named, reviewed_run, samples
from tests.builder.gold.gold_for_tests import (
    BUNDLED,
    GOLD,
    KITE,
    OTTER,
    Reader,
    read_lines,
    write_gold,
    write_lines,
)
from tests.progress_for_tests import Heard
from tests.test_cli import echo_hf

READER = EngineChoice(kind="gold_reader")
RULES = EngineChoice(kind="rules")


@pytest.fixture
def reader() -> Reader:
    engine = Reader()
    register("gold_reader")(lambda: engine)
    return engine


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> CheckResult:
    register("gold_reader")(Reader)
    return check_engine(engine=READER, half="all", runs=tmp_path_factory.mktemp("checked"))


def values(result: CheckResult) -> dict[tuple[str, str], float | None]:
    return {(one.stage, one.name): one.value for one in result.measures}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_gold(tmp_path)
    return tmp_path / "config.yaml"


def test_right_answers_score_one_on_everything(checked: CheckResult) -> None:
    assert len(checked.measures) == 30
    for one in checked.measures:
        assert one.n > 0, one.name
        assert (one.value, one.coverage) == (1, 1), one.name
        assert one.strict in (1, None), one.name
        assert one.errors == ()
    assert checked.notes == ()


def test_each_line_of_gold_is_compared_once(checked: CheckResult) -> None:
    n = {one.name: one.n for one in checked.measures}
    assert n["picture_role_accuracy"] == 61 - 1  # one is of a post that belongs to no sample
    names = ("relevance", "extract", "roles", "screenshots", "feedback")
    gold = {name: read_lines(BUNDLED / "gold" / f"{name}.jsonl") for name in names}
    samples = [one for line in gold["extract"] for one in line["samples"] if not one["optional"]]
    expected = {
        "score_accuracy": len(gold["relevance"]),
        "sample_recall": len(samples),
        "feedback_recall": sum(len(one["feedback"]) for one in samples),
        "blanks_filled": sum(len(line["filled"]) for line in gold["roles"]),
        "prompt_similarity": len(gold["screenshots"]),
        "verdict_accuracy": len(gold["feedback"]),
        "hazard_recall": 1,
    }
    assert {name: n[name] for name in expected} == expected


def test_a_second_check_asks_nothing_and_tells_nothing_of_the_held_out_half(
    reader: Reader, tmp_path: Path
) -> None:
    unanswered, answered = Heard(), Heard()
    none = check_engine(engine=READER, runs=tmp_path, offline=True, watch=unanswered)
    assert not reader.asked
    for one in none.measures:  # what is not answered is not wrong
        assert (one.value, one.n, one.low) == (None, 0, None), one.name
        assert one.coverage in (0, None), one.name
        assert one.strict in (0, None), one.name
    assert [set(one.failed) for one in none.stages] == [{"not_answered"}] * 6

    first = check_engine(engine=READER, runs=tmp_path, watch=answered)
    asked = dict(reader.asked)
    again = check_engine(engine=READER, runs=tmp_path)
    assert list(asked) == [one.stage for one in first.stages]
    assert reader.asked == asked
    assert first.measures == again.measures
    assert sum(one.fill.calls for one in again.stages) == 0
    assert sum(one.fill.stage_cost_usd or 0 for one in again.stages) == 0.25 * sum(asked.values())

    for watch in (unanswered, answered):
        assert [one.stats.stage for one in watch.results] == ["collect", *asked]
        assert all(len(one.quarantine) == 0 for one in watch.results)
        assert all(one.stats.noted == {} for one in watch.results)
    assert all(one.stats.quarantined for one in unanswered.results[1:])
    assert not any(one.stats.quarantined for one in answered.results)


class WorseTogether(Reader):
    """Is right about each post alone; of several it scores the second as 1, and loses the third."""

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            part = request.messages[-1].parts[0]
            if not (isinstance(part, Text) and part.text.startswith("<posts>")):
                ((_, given),) = super().stream([request])
                yield number, given
                continue
            numbers = [post["number"] for post in json.loads(part.text.splitlines()[1])]
            score = {"score": 5, "note": None}
            entries = [{"number": n, **score} for place, n in enumerate(numbers) if place != 2]
            entries[1]["score"] = 1
            yield number, Completion(json.dumps({"posts": entries}), usage=Usage(30, 9), cost_usd=1)


def test_several_posts_in_a_request_are_compared_with_one_by_one(own: Path, tmp_path: Path) -> None:
    engine = WorseTogether()
    register("gold_reader")(lambda: engine)
    value = yaml.safe_load(own.read_text())
    value |= {"engines": {"text": {"kind": "gold_reader"}}}
    value["stages"] = {"relevance": {"posts_per_request": 4}}
    gold = read_lines(BUNDLED / "gold" / "relevance.jsonl")
    own.write_text(yaml.safe_dump(value))
    given: Any = {"half": "all", "stages": ["relevance"], "runs": tmp_path / "runs"}
    result = check_engine(own, **given)
    found = result.packing
    assert found is not None
    assert (found.posts_per_request, found.posts, found.right_alone) == (4, len(gold), len(gold))
    assert found.right < len(gold)
    lost = len(gold) - found.right
    assert found.points == pytest.approx(-100 * lost / len(gold))
    # Agresti and Min 2005: half a post is added to each cell of the two by two table.
    b, c, n = lost + 0.5, 0.5, len(gold) + 2
    error = 1.96 * (b + c - (b - c) ** 2 / n) ** 0.5 / n
    assert (found.low, found.high) == pytest.approx(
        (100 * ((c - b) / n - error), 100 * ((c - b) / n + error))
    )
    assert found.prompt_tokens[1] == 10 * len(gold)
    command = ["check-engine", own, "--stage", "relevance", "--half", "all"]
    done = echo_hf(*command, "--runs", tmp_path / "runs", cwd=tmp_path)
    shown = " ".join(done.stdout.split())
    points = f"{found.points:+.1f} points ({found.low:+.1f} to {found.high:+.1f})"
    assert "relevance, 4 posts a request: " in shown
    assert f"one by one 100 %: {points}." in shown
    assert check_engine(own, **given).packing == found
    value["stages"] = {"relevance": {"posts_per_request": 1}}
    own.write_text(yaml.safe_dump(value))
    assert check_engine(own, **given).packing is None


def test_mistakes_are_found_before_posts_are_read(own: Path, tmp_path: Path) -> None:
    gold, runs = tmp_path / "gold", tmp_path / "runs"
    for name, rows in GOLD.items():
        write_lines(gold / f"{name}.jsonl", [{**row, "half": "tune"} for row in rows])
    with pytest.raises(GoldError, match="no line of half 'held_out': choose another --half"):
        check_engine(own, gold=gold, runs=runs)
    write_gold(tmp_path)
    (gold / "posts.jsonl").unlink()  # the config's posts are not there either
    with pytest.raises(SourceError):
        check_engine(own, gold=gold, runs=runs)
    with pytest.raises(EngineError, match="'rules'"):
        check_engine(own, engine=EngineChoice(kind="rules", modle="x"), gold=gold, runs=runs)
    with pytest.raises(GoldError, match="'screenshots' cannot be checked"):
        check_engine(own, gold=gold, stages=["screenshots"], runs=runs)


def test_some_files_check_some_stages(own: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    (gold / "roles.jsonl").unlink()
    result = check_engine(own, gold=gold, runs=tmp_path / "runs")
    assert [one.stage for one in result.stages] == ["relevance", "extract"]
    assert [note.split()[0] for note in result.notes] == [
        "roles", "screenshots", "feedback", "safety",
    ]  # fmt: skip
    with pytest.raises(GoldError, match=r"'feedback' cannot be checked: .* in roles"):
        check_engine(own, gold=gold, stages=["feedback"], runs=tmp_path / "runs")


def test_own_gold_comes_with_posts_or_takes_those_of_the_config(own: Path, tmp_path: Path) -> None:
    gold, runs = tmp_path / "gold", tmp_path / "runs"
    first = check_engine(own, gold=gold, half="all", runs=runs)
    assert (first.target, first.threads) == ("Tern 2", 3)
    assert first.posts == str(gold / "posts.jsonl")
    assert values(first)["extract", "sample_recall"] == 1
    assert values(first)["extract", "prompts_exact"] == 1
    shutil.move(gold / "pictures", tmp_path / "pictures")
    posts = (gold / "posts.jsonl").read_text("utf-8")
    (gold / "posts.jsonl").unlink()
    other = {"url": "https://example.org/x", "pictures": [{"path": "pictures/none.png"}]}
    (tmp_path / "elsewhere.jsonl").write_text(f"{json.dumps(other)}\n{posts}", "utf-8")
    assert check_engine(own, gold=gold, half="all", runs=runs).measures == first.measures
    images = runs / "check-engine" / "mine" / "pictures"
    assert sum(path.is_file() for path in images.rglob("*")) == 3


def test_what_trash_hides_is_counted(own: Path, tmp_path: Path) -> None:
    folder, runs = tmp_path / "gold", tmp_path / "runs"
    extract = copy.deepcopy(GOLD["extract"])
    extract[0]["samples"][0]["quality"] = "Trash"
    write_lines(folder / "extract.jsonl", extract)
    roles = copy.deepcopy(GOLD["roles"])
    roles[0]["collage"] = {"post_url": OTTER, "index": 0}
    write_lines(folder / "roles.jsonl", roles)
    result = check_engine(own, gold=folder, half="all", runs=runs)
    n = {(one.stage, one.name): one.asked for one in result.measures}
    assert [note.split(" are not in the figures")[0] for note in result.notes] == [
        "screenshots is not checked: there is no line in screenshots (.jsonl)",
        "1 of 2 lines of roles.jsonl",
        "1 of 1 lines of feedback.jsonl",
        "1 of 2 lines of tasks.jsonl",
        "1 of 2 lines of safety.jsonl",
    ]
    assert n["roles", "picture_role_accuracy"] == 2
    assert (n["feedback", "verdict_accuracy"], n["feedback", "task_accuracy"]) == (0, 1)
    alone = check_engine(own, gold=folder, half="all", stages=["extract"], runs=runs)
    assert alone.notes == ()
    assert check_engine(own, gold=folder, half="all", stages=[], runs=runs).stages == ()


def test_errors_are_for_tuning(own: Path, tmp_path: Path) -> None:
    rows = [{**GOLD["relevance"][1], "score": 1, "acceptable": [1]}, *GOLD["relevance"][::2]]
    write_lines(tmp_path / "gold" / "relevance.jsonl", rows)
    gold, runs = tmp_path / "gold", tmp_path / "runs"
    result = check_engine(own, gold=gold, half="tune", stages=["relevance"], errors=True, runs=runs)
    accuracy = next(one for one in result.measures if one.name == "score_accuracy")
    assert [(one.place, one.expected, one.score) for one in accuracy.errors] == [(KITE, "1", 0)]
    assert int(accuracy.errors[0].answer) > 1
    for half in ("held_out", "all"):
        with pytest.raises(ConfigError, match="are not shown"):
            check_engine(own, gold=gold, half=half, errors=True, runs=runs)
    hidden = check_engine(own, gold=gold, half="tune", runs=runs)
    assert all(one.errors == () for one in hidden.measures)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"half": "heldout"}, "unknown half 'heldout'; did you mean 'held_out'"),
        ({"stages": ["role"]}, "'role'; did you mean 'roles'"),
        ({"stages": ["threads"]}, "unknown stage that asks a model 'threads'"),
    ],
)
def test_what_is_misspelt_is_named(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises((ConfigError, StageError), match=said):
        check_engine(engine=RULES, runs=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


OTHER = EngineChoice(kind="auto", model="org/small")


def test_without_gold_the_bundled_posts_and_their_target_serve(own: Path, tmp_path: Path) -> None:
    given, gold, posts, _ = read_gold_setting(None, OTHER, None)
    assert (given.target.name, set(given.engines.values())) == ("Lumen Image", {OTHER})
    assert (gold / "relevance.jsonl").exists()
    assert [one.source for one in posts] == ["quickstart"]
    own.write_text(own.read_text().replace("rules}}", "rules}}\nstages: {relevance: {keep: [5]}}"))
    given, *_ = read_gold_setting(own, None, None)
    assert (given.name, given.target.name) == ("mine", "Lumen Image")
    assert given.stages.relevance.keep == (5,)
    assert [one.kind for one in given.engines.values()] == ["rules"]
    given, _, posts, _ = read_gold_setting(own, OTHER, tmp_path / "gold")
    assert (given.target.name, set(given.engines.values())) == ("Tern 2", {OTHER})
    assert [one.path for one in posts] == [tmp_path / "gold" / "posts.jsonl"]
    for too_little in ((None, None, None), (None, OTHER, tmp_path)):
        with pytest.raises(ConfigError, match="say which engine: "):
            read_gold_setting(*too_little)


def test_a_users_mistake_is_one_line(own: Path, tmp_path: Path) -> None:
    with (tmp_path / "gold" / "relevance.jsonl").open("a") as file:
        file.write('{"url": "https://example.org/o2", "scroe": 4}\n')
    done = echo_hf("check-engine", "config.yaml", "--gold", "gold", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "relevance.jsonl:4: unknown key 'scroe'" in done.stderr
    for options, said in (
        (["--model", "m"], "--model is that of"),
        (["--engine", "ruels"], "'rules'"),
    ):
        done = echo_hf("check-engine", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr


FOX = "A flat vector mascot"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    reviewed_run(folder)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "copy")


def said(folder: Path, **decided: Any) -> None:
    decide(folder / "config.yaml", **decided, runs=folder / "runs")


def exported(folder: Path) -> tuple[list[Row], list[Row], dict[NotGold, int]]:
    made = export_gold(folder / "config.yaml", folder / "gold", runs=folder / "runs")
    files = (
        (folder / "gold" / f"{name}.jsonl").read_text("utf-8") for name in ("extract", "roles")
    )
    extract, roles = ([json.loads(line) for line in text.splitlines()] for text in files)
    return extract, roles, dict(made.left_out)


def test_what_is_kept_is_gold_of_its_thread(folder: Path) -> None:
    lake = named(folder, LAKE)
    said(folder, keep=[lake["id"]])
    (thread,), (roles,), left_out = exported(folder)
    assert left_out == {}
    (sample,) = thread["samples"]
    assert (sample["prompt"], sample["quality"]) == (lake["prompt"], "Benchmark")
    assert sample["post_urls"] == lake["post_urls"]
    assert thread["root_url"] == roles["root_url"]
    found = [(one["index"], one["role"]) for one in roles["pictures"]]
    assert found == [(0, "input"), (1, "output")]


def test_what_a_reviewer_put_right_is_what_gold_says(folder: Path) -> None:
    lake = named(folder, LAKE)
    words = "Turn this photo into a night scene with a full moon and stars."
    edit = SampleEdit(words, "Analysis", {lake["output_images"][0]: "neither"})
    said(folder, keep=[lake["id"]], edits={lake["id"]: edit})
    (thread,), (roles,), _ = exported(folder)
    (sample,) = thread["samples"]
    assert (sample["prompt"], sample["quality"], roles["prompt"]) == (words, "Analysis", words)
    assert [one["role"] for one in roles["pictures"]] == ["input", "neither"]


def test_check_engine_reads_it(folder: Path) -> None:
    said(folder, keep=[row["id"] for row in samples(folder)])
    extract, roles, left_out = exported(folder)
    gold = read_gold(folder / "gold")
    config = folder / "config.yaml"
    register("written_down")(RecordedEngine)  # which is refused under its own name
    same = EngineChoice(kind="written_down", path=str(folder / "answers.jsonl"))
    runs = folder / "runs"
    result = check_engine(config, engine=same, gold=folder / "gold", half="all", runs=runs)
    found = {(one.name, one.value) for one in result.measures}
    assert (len(gold["extract"]), len(gold["roles"])) == (len(extract), len(roles))
    assert {("sample_recall", 1.0), ("prompts_exact", 1.0), ("picture_role_accuracy", 1.0)} <= found
    in_gold = sum(len(line["samples"]) for line in extract)
    lost = sum(count for why, count in left_out.items() if why != NotGold.IN_SCREENSHOT)
    assert in_gold + lost == len(samples(folder))


def test_why_samples_are_left_out_is_told(folder: Path) -> None:
    fox, mail, lake = (named(folder, words) for words in (FOX, MAIL[:12], LAKE))
    cat = named(folder, "A tiny cat")
    foreign = {mail["id"]: SampleEdit("a card that nobody asked for, in teal")}
    said(folder, keep=[lake["id"], cat["id"], mail["id"]], edits=foreign)
    _, _, left_out = exported(folder)
    assert left_out == {NotGold.NOT_REVIEWED: 1, NotGold.NOT_COPIED: 1}
    shutil.rmtree(folder / "gold")
    tiny = [row["id"] for row in samples(folder) if row["prompt"].startswith("A tiny ")]
    said(folder, keep=[fox["id"], *tiny])
    assert exported(folder)[2][NotGold.COMPLETION] == len(tiny)


def test_a_screenshot_is_gold_of_its_words_only(folder: Path) -> None:
    chair = named(folder, CHAIR)
    said(folder, keep=[chair["id"]])
    (thread,), roles, left_out = exported(folder)
    assert [one["prompt"] for one in thread["samples"]] == [chair["prompt"]]
    assert (roles, left_out) == ([], {NotGold.IN_SCREENSHOT: 1})


def test_what_is_removed_is_optional(folder: Path) -> None:
    lake = named(folder, LAKE)
    said(folder, remove=[lake["id"]])
    (thread,), roles, _ = exported(folder)
    assert [one["optional"] for one in thread["samples"]] == [True]
    assert roles == []


def test_nothing_is_overwritten_and_nothing_is_made_of_nothing(folder: Path) -> None:
    said(folder, flag=[named(folder, LAKE)["id"]])  # which decides nothing
    with pytest.raises(GoldError, match="no sample is kept or removed as it is now"):
        exported(folder)
    said(folder, keep=[named(folder, LAKE)["id"]])
    (folder / "gold").mkdir()
    (folder / "gold" / "extract.jsonl").write_text("mine", "utf-8")
    with pytest.raises(GoldError, match="is not empty: name a new folder"):
        exported(folder)
    assert (folder / "gold" / "extract.jsonl").read_text("utf-8") == "mine"
