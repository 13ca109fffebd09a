"""`echo-hf rank` without a browser: the run, the page as HTML, and the table of people's ranks."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy.stats import t
from typer.testing import CliRunner

from echo_hf.apps.page import Place
from echo_hf.apps.rank.rank import (
    APP,
    HumanTable,
    RankedSample,
    Ranker,
    Ranks,
    ShownOutput,
    View,
    board,
    rank,
    ranks_of,
    write_human,
)
from echo_hf.cli import app
from echo_hf.cli.evaluation_view import show_draw, show_written
from echo_hf.engines.base import ImageRef
from echo_hf.errors import RunError, ScoreError
from echo_hf.judging.score import agree
from echo_hf.reasons import LeftOut
from echo_hf.scores import human_corrected
from echo_hf.systems.base import Task
from echo_hf.tables import HUMAN, RATINGS
from tests.apps.rank.ranked_run import SYSTEMS, WORDS, ranked_run
from tests.apps.rank.test_session import did, ranker, sample
from tests.judging.run_for_tests import rating, write

HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)> \"'`${1}{{2}}&lt;"


class Parts(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parts(view: View) -> Parts:
    return Parts(board(view, lambda digest: f"/image/{digest[0]}", 5))


def lighthouse(words: str = "a lighthouse") -> RankedSample:
    task = Task(words, "d", "text_to_image", words, (ImageRef("1" * 64),))
    return RankedSample(task, (ShownOutput("zorblatt", "2" * 64), ShownOutput("quixel", "3" * 64)))


def test_texts_of_posts_are_text_and_no_system_is_on_the_page(tmp_path: Path) -> None:
    plain = parts(ranker(tmp_path, lighthouse()).view("ann"))
    view = ranker(tmp_path, lighthouse(HOSTILE)).view("ann")
    found, page = parts(view), board(view, lambda digest: f"/image/{digest[0]}")
    assert "".join(found.text).count(HOSTILE) == 1
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not [name for _, named in found.tags for name in named if name.startswith("on")]
    board_tag = next(named for _, named in found.tags if "board" in (named.get("class") or ""))
    assert (board_tag["data-subject"], board_tag["data-answer"]) == (HOSTILE, "5")
    assert not [name for name in ("zorblatt", "quixel", "2" * 64) if name in page]
    shown = [named["src"] for tag, named in found.tags if tag == "img"]
    assert shown == ["/image/1", *(f"/image/{one.output[0]}" for one in view.outputs)]


def test_ranks_and_progress_are_shown(tmp_path: Path) -> None:
    one = ranker(tmp_path, lighthouse())
    assert "nothing to save yet" in board(one.view("ann"), str)
    did(one, "ann", "place", item=0, rank=1)
    view = did(one, "ann", "bar", item=1)[0]
    found = parts(view)
    labels = [named["aria-label"] for tag, named in found.tags if tag == "article"]
    assert labels == ["Image A, rank 1", "Image B, cannot be ranked"]
    text = "".join(found.text)
    assert view.saved is not None
    for words in ("Sample 1 of 1", "1 ranked · all ranked, thank you", f"{view.saved:%H:%M} UTC"):
        assert words in text


def test_there_is_a_card_of_its_own_for_each_of_many_images(tmp_path: Path) -> None:
    one = ranker(tmp_path, sample("s", *(f"m{at}" for at in range(30))))
    tags = Parts(board(one.view("ann"), str)).tags
    labels = {named["aria-label"] for tag, named in tags if tag == "article"}
    assert len(labels) == len([1 for _, named in tags if "data-rank" in named]) == 30
    assert "Image D2, not ranked" in labels


Row = dict[str, Any]


def row(sample: str, rater: str, system: str, rank: int | None) -> Row:
    key = {"sample_id": sample, "rater": rater, "system": system}
    return {**key, "rank": rank, "cannot_rank": rank is None, "score": None}


@pytest.fixture
def ranked(tmp_path: Path) -> Ranker:
    return ranker(tmp_path, *(sample(name, "ash", "elm", "oak") for name in ("s1", "s2")))


def written(tmp_path: Path, ranked: Ranker) -> HumanTable:
    return write_human(tmp_path, ranked.log.events(APP), ranked.draw)


def rows(tmp_path: Path) -> list[Row]:
    found: list[Row] = pq.read_table(tmp_path / "human.parquet").to_pylist()
    return found


def place(ranked: Ranker, person: str, **ranks: int) -> None:
    shown = [one.system for one in ranked.view(person).outputs]
    for system, at in ranks.items():
        did(ranked, person, "place", item=shown.index(system), rank=at)


def test_rows_are_ranks_of_systems(tmp_path: Path, ranked: Ranker) -> None:
    place(ranked, "ann", ash=3, elm=1, oak=3)
    place(ranked, "ben", ash=1, elm=2)
    did(ranked, "cy", "impossible")
    assert written(tmp_path, ranked) == HumanTable(tmp_path / "human.parquet", 2, 0, {})
    nothing = [row("s1", "cy", system, None) for system in ("ash", "elm", "oak")]
    ann = [row("s1", "ann", name, rank) for name, rank in {"ash": 2, "elm": 1, "oak": 2}.items()]
    assert rows(tmp_path) == [*ann, *nothing]
    assert pq.read_schema(tmp_path / "human.parquet").equals(HUMAN.schema)


def test_ranks_from_elsewhere_stay(tmp_path: Path, ranked: Ranker) -> None:
    elsewhere = [row("s1", "zoe", "ash", 1), row("s2", "ann", "ash", 4), row("gone", "x", "y", 1)]
    mine = [row("s1", "ann", "ash", 9)]
    table = pa.Table.from_pylist([*elsewhere, *mine], HUMAN.schema)
    pq.write_table(table, tmp_path / "human.parquet")
    place(ranked, "ann", ash=1, elm=2, oak=3)
    assert written(tmp_path, ranked).kept == 3
    found = rows(tmp_path)
    assert [one for one in elsewhere if one not in found] == []
    assert row("s1", "ann", "ash", 1) in found
    assert mine[0] not in found
    assert len(found) == 6


def test_what_is_taken_back_leaves_the_table(tmp_path: Path, ranked: Ranker) -> None:
    did(ranked, "ann", "next")
    assert written(tmp_path, ranked).rankings == 0
    assert not (tmp_path / "human.parquet").exists()
    did(ranked, "ann", "back")
    did(ranked, "ann", "impossible")
    assert written(tmp_path, ranked).rankings == 1
    did(ranked, "ann", "undo")
    assert written(tmp_path, ranked).rankings == 0
    assert rows(tmp_path) == []


def test_ranks_of_images_that_are_gone_are_counted(tmp_path: Path, ranked: Ranker) -> None:
    place(ranked, "ann", ash=1, elm=2, oak=3)
    events = ranked.log.events(APP)
    other = ranker(tmp_path, sample("s1", "elm", "oak"))
    result = write_human(tmp_path, events, other.draw)
    assert result.left_out == {LeftOut.OTHER_OUTPUT: 1}
    assert rows(tmp_path) == [row("s1", "ann", "elm", 2), row("s1", "ann", "oak", 3)]
    anew = ranker(tmp_path, sample("s1", "ash", "elm", "oak", digest="e"))
    assert write_human(tmp_path, events, anew.draw).left_out == {LeftOut.OTHER_OUTPUT: 3}


def test_a_table_that_cannot_be_read_is_not_written_over(tmp_path: Path, ranked: Ranker) -> None:
    (tmp_path / "human.parquet").write_text("ranks, by hand", "utf-8")
    did(ranked, "ann", "impossible")
    with pytest.raises(RunError, match="is not a table of human"):
        written(tmp_path, ranked)
    assert (tmp_path / "human.parquet").read_text("utf-8") == "ranks, by hand"


FEW = SYSTEMS[:3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ranked_run(tmp_path, systems=FEW)
    return tmp_path


def opened(folder: Path, draw: int = 100, splits: tuple[str, ...] = ()) -> Ranks:
    config = folder / "evaluation.yaml"
    return ranks_of(config, runs=folder / "runs", draw=draw, splits=splits)


def said(folder: Path, show: object, ranks: Ranks) -> str:
    console = Console(width=300)
    with console.capture() as captured:
        show(console, ranks)  # type: ignore[operator]
    return captured.get()


def test_ranks_of_the_page_are_what_agree_reads(folder: Path) -> None:
    ranks = opened(folder)
    for person in ("ann", "ben"):
        for _ in range(5):
            shown = [one.system for one in ranks.ranker.view(person).outputs]
            for place, system in enumerate(FEW, 1):
                did(ranks.ranker, person, "place", item=shown.index(system), rank=place)
            did(ranks.ranker, person, "next")
    written = ranks.write()
    assert (written.rankings, written.kept) == (10, 0)
    assert pq.read_table(written.path).num_rows == 30
    marks = [rating(name, system, 9 - place) for name in WORDS for place, system in enumerate(FEW)]
    write(folder, RATINGS, marks)
    found = agree(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    assert found.merged.people.consensus.ranking == FEW
    assert found.merged.judges.with_consensus["mira"].tau == pytest.approx(1)
    assert "10 rankings in" in said(folder, show_written, ranks)


def test_only_the_splits_that_were_named_are_drawn(folder: Path) -> None:
    assert len(opened(folder).ranker.draw.samples) == 5
    one = opened(folder, draw=1)
    splits = [sample.task.split for sample in one.ranker.draw.samples]
    assert splits == ["image_to_image", "text_to_image"]
    told = said(folder, show_draw, one)
    assert "not ranked: 3 not_drawn: enough samples of its split were drawn before it" in told
    edits = opened(folder, splits=("image_to_image",))
    assert "to rank: 2 of image_to_image (seed 0)" in said(folder, show_draw, edits)


def test_a_width_draws_as_many_as_it_needs(tmp_path: Path) -> None:
    """By what is known of other ratings first, from 10 ranked samples on by the run's own."""
    names = tuple(f"word{at:03}" for at in range(60))
    ranked_run(tmp_path, edits={}, words=names, systems=FEW)
    config, runs = tmp_path / "evaluation.yaml", tmp_path / "runs"
    half = {n: t.ppf(0.975, n - 1) * 0.21 * (1 / n - 1 / 60) ** 0.5 for n in range(10, 60)}
    first = next(n for n, one in half.items() if one <= 0.08)
    for ranked, expected, why in (
        (0, first, "from a spread of 0.21 in other ratings"),
        (9, first, "from a spread of 0.21 in other ratings"),
        (20, None, "from the 20 that people ranked"),
    ):
        marks = [rating(name, system, at) for name in names for at, system in enumerate(FEW)]
        rows = [
            {"sample_id": name, "rater": "ada", "system": system, "rank": 1 + (at * 5 + place) % 3}
            for at, name in enumerate(names[:ranked])
            for place, system in enumerate(FEW)
        ]
        write(tmp_path, RATINGS, marks)
        write(tmp_path, HUMAN, rows)
        ranks = ranks_of(config, runs=runs, width=0.08)
        count = len(ranks.ranker.draw.samples)
        assert count == (expected or human_corrected(marks, rows).n_for(0.08))
        told = said(tmp_path, show_draw, ranks)
        assert f"to rank: {count} of text_to_image for an interval of ±0.08, {why} (seed" in told
    with pytest.raises(ScoreError, match="width is 0: expected half an interval"):
        ranks_of(config, runs=runs, width=0)


def test_what_cannot_be_drawn_or_served_is_refused(folder: Path, tmp_path: Path) -> None:
    """A split of fewer than ten samples is drawn whole, whatever the width."""
    config = folder / "evaluation.yaml"
    ranks = ranks_of(config, runs=folder / "runs", width=0.03, splits=("text_to_image",))
    told = said(folder, show_draw, ranks)
    assert "3 of text_to_image for an interval of ±0.03, which takes 10 samples at least" in told
    both = CliRunner().invoke(app, ["rank", str(config), "--draw", "5", "--width", "0.1"])
    assert str(both.exception) == "--draw and --width both say how many samples: leave out one"
    with pytest.raises(RunError, match="can be reached from other machines"):
        rank(ranks, place=Place("0.0.0.0", 0), ready=pytest.fail)  # noqa: S104 - what is refused
    alone = tmp_path / "alone"
    alone.mkdir()
    ranked_run(alone, systems=FEW[:1])
    with pytest.raises(RunError, match=r"no sample .* by two systems \(5 few_outputs\)"):
        opened(alone)
