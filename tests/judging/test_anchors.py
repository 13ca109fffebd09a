"""Systems that join a board: who was there stays, and says what its strength rests on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from datasets import Dataset

from echo_hf.errors import ConfigError, EchoError, ScoreError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.leaderboard import ScoredRelease
from echo_hf.hub.leaderboard import render_leaderboard as board_of
from echo_hf.hub.release import read_release, write_release
from echo_hf.hub.run_tables import parse_definition, select_released_tables
from echo_hf.images.store import ImageStore
from echo_hf.judging.score import score
from echo_hf.report.report import report
from echo_hf.tables import RATINGS, SAMPLES
from tests.judging.run_for_tests import TARGET, Row, page_of, rating, root, run, sample, write

WORDS = tuple(f"word{at:02}" for at in range(40))
SPLIT = "text_to_image"
SKILL = {"ash": 0.0, "birch": 0.7, "cedar": -0.6}


def rated(**skill: float) -> list[Row]:
    """Ratings by two judges; a system's depend on its name and skill alone."""
    rows = []
    for system, level in skill.items():
        rng = np.random.default_rng(list(system.encode()))
        for judge in ("jay", "kite"):
            for name, value in zip(WORDS, rng.normal(5 + level, 1, len(WORDS)), strict=True):
                rows.append(rating(name, system, float(value), judge=judge))
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark, and beside it `before.json`: the figures of three systems."""
    run(tmp_path, {}, WORDS)
    write(tmp_path, RATINGS, rated(**SKILL))
    shutil.copy(scored(tmp_path), tmp_path / "before.json")
    return tmp_path


def scored(folder: Path, **config: Any) -> Path:
    path = folder / "evaluation.yaml"
    known = {"name": "evaluation", "benchmark": "benchmark"}
    path.write_text(yaml.safe_dump({**known, **config}), "utf-8")
    return score(path, runs=folder / "runs", n_boot=100).path


def rates_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())["details"][SPLIT]["win_rate"]
    return found


def strengths(path: Path) -> dict[str, float]:
    found: dict[str, float] = rates_of(path)["bradley_terry"]["strength"]
    return found


def released(folder: Path, name: str) -> Path:
    """The run as a release of its own, as `build` makes it."""
    rows = {"image_to_image": [], SPLIT: [sample(word, []) for word in WORDS]}
    schema = SAMPLES.features.arrow_schema
    samples = {one: Dataset(pa.Table.from_pylist(some, schema)) for one, some in rows.items()}
    tables = select_released_tables(root(folder), samples).configs
    images, facts = ImageStore(folder / "made"), ReleaseFacts(name, TARGET)
    write_release(folder / name, {**samples, **tables}, images, facts)
    return folder / name


def test_who_joins_moves_nobody(folder: Path) -> None:
    """Without anchors everybody moves; with them strengths and intervals are the same numbers."""
    before = rates_of(folder / "before.json")["bradley_terry"]
    write(folder, RATINGS, rated(**SKILL, dogwood=2.0))
    assert strengths(scored(folder))["ash"] != pytest.approx(before["strength"]["ash"], abs=0.1)

    path = scored(folder, anchors="before.json")
    found = rates_of(path)
    after = found["bradley_terry"]
    assert {name: after["strength"][name] for name in SKILL} == before["strength"]
    assert {name: after["interval"][name] for name in SKILL} == before["interval"]
    low, high = after["interval"]["dogwood"]
    assert low < after["strength"]["dogwood"] < high
    anchor = found["anchors"]["ash"]
    assert (anchor["release"], [*anchor["judges"]]) == ("lumen", ["jay", "kite"])
    assert "dogwood" not in found["anchors"]

    board = page_of(folder).partition("anchors stay as they are")[2].splitlines()[2:6]
    ranked = sorted(after["strength"].items(), key=lambda one: -one[1])
    shown = [line.split() for line in board]
    assert [line[:2] for line in shown] == [[name, f"{value:.3f}"] for name, value in ranked]
    said = dict.fromkeys(SKILL, "lumen, judged by jay, kite") | {"dogwood": "joins"}
    assert all(line.rstrip().endswith(said[line.split()[0]]) for line in board)
    made = report(folder / "evaluation.yaml", runs=folder / "runs").path.read_text("utf-8")
    assert "lumen, judged by jay, kite" in made


def test_a_release_anchors_and_a_chain_keeps_where_each_strength_is_from(folder: Path) -> None:
    """As two tags of a leaderboard: the second has the first's strengths, and one more."""
    before = strengths(folder / "before.json")
    released(folder, "first")
    write(folder, RATINGS, rated(**SKILL, dogwood=2.0))
    second = strengths(scored(folder, anchors="first"))
    assert {name: second[name] for name in SKILL} == pytest.approx(before, abs=1e-9)
    released(folder, "second")

    write(folder, RATINGS, rated(**SKILL, dogwood=2.0, elm=-2.0))
    path = scored(folder, anchors="second")
    assert {name: value for name, value in strengths(path).items() if name != "elm"} == second
    origin = {name: one["release"] for name, one in rates_of(path)["anchors"].items()}
    assert origin == {**dict.fromkeys(SKILL, "first"), "dogwood": "second"}
    shutil.copy(path, folder / "third.json")
    assert strengths(scored(folder, anchors="third.json")) == strengths(path)

    rows = [dict(row) for row in read_release(folder / "second").datasets["results"]]
    figures = tuple({**row, "definition": parse_definition(row)} for row in rows)
    tag = ScoredRelease("v2", "c0ffee", "Lumen", figures)
    page = " ".join(board_of([tag], "v2", SPLIT).split())
    assert f"<td>ash</td><td>{before['ash']:.3f}</td>" in page
    assert "<td>first, judged by jay, kite</td>" in page
    assert "<td>joined in v2</td>" in page


def changed(folder: Path, change: Mapping[str, Any]) -> None:
    """Changes one value of `before.json`, by its path."""
    path = folder / "before.json"
    told = json.loads(path.read_bytes())
    for where, value in change.items():
        *parts, last = where.split("/")
        part = told
        for key in parts:
            part = part[key]
        part[last] = value
    path.write_text(json.dumps(told), "utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({f"benchmark/digests/{SPLIT}": "0" * 64}, "'ash' of text_to_image has its strength on"),
        ({"judges/jay/model": "jay-1"}, "says that jay is 'jay-1', here it is 'jay-2'"),
        ({"systems/ash/model": "ash-1"}, "says that it is 'ash-1', here it is 'ash-2'"),
        ({"protocol": "published"}, "follows protocol 'published', this run 'corrected'"),
        ({f"details/{SPLIT}/win_rate": None}, "holds no strengths"),
        ({"details": []}, "holds no strengths"),
        ({"results": []}, "no system there has a strength in text_to_image"),
    ],
)
def test_strengths_of_another_scale_are_refused(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    changed(folder, change)
    known = {"developer": "Pip", "status": "current"}
    system = {"name": "ash", "adapter": "files", "model": "ash-2", **known}
    judge = {"name": "jay", "engine": {"kind": "vllm", "model": "jay-2"}, **known}
    with pytest.raises(ScoreError, match=said):
        scored(folder, anchors="before.json", systems=[system], judges=[judge])


def test_other_judges_are_another_scale(folder: Path) -> None:
    write(folder, RATINGS, [row for row in rated(**SKILL) if row["judge"] == "jay"])
    with pytest.raises(ScoreError, match=r"judged by \['jay', 'kite'\], here it is by \['jay'\]"):
        scored(folder, anchors="before.json")


@pytest.mark.parametrize("place", ["gone.json", "https://mira:pw@example.org/results.json"])
def test_a_place_that_is_none_is_refused_with_the_config(folder: Path, place: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a results\.json, the folder of a") as caught:
        scored(folder, anchors=place)
    assert ":pw@" not in str(caught.value)


def test_a_release_without_results_is_refused(folder: Path) -> None:
    with pytest.raises(EchoError, match="results"):
        scored(folder, anchors="benchmark")
