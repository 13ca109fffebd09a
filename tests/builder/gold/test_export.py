"""Gold from what reviewers decided."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.gold.check import check_engine
from echo_hf.builder.gold.export import export_gold
from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.review import decide
from echo_hf.config.checks import EngineChoice
from echo_hf.curate.edits import Edit
from echo_hf.engines.base import register
from echo_hf.engines.recorded import RecordedEngine
from echo_hf.errors import GoldError
from echo_hf.reasons import NotGold
from tests.apps.review.reviewed_run import CHAIR, LAKE, MAIL, named, reviewed_run, samples

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
    edit = Edit(words, "Analysis", {lake["output_images"][0]: "neither"})
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
    foreign = {mail["id"]: Edit("a card that nobody asked for, in teal")}
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
