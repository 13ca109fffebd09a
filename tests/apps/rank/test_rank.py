"""What people see and do while they rank, the page as HTML, and the table; without a browser."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy.stats import chi2, rankdata, t
from typer.testing import CliRunner

from echo_hf.apps.page import ServerAddress
from echo_hf.apps.rank import (
    ACTIONS_ON_IMAGE,
    ACTIONS_WITH_RANK,
    APP,
    HiddenOutput,
    NotRanked,
    RankedSample,
    RankingApp,
    RankingDraw,
    RankingPage,
    RankingTotals,
    SampleRanking,
    apply_action,
    draw_samples,
    open_ranking,
    rank,
    render_ranking_page,
    shuffle_outputs,
)
from echo_hf.cli import app
from echo_hf.cli.evaluation_view import show_draw, show_ranking_files
from echo_hf.engines.base import ImageRef
from echo_hf.errors import RunError, ScoreError
from echo_hf.hub.facts import LeftOut
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import NotJudged
from echo_hf.judging.score import measure_agreement
from echo_hf.scores import human_corrected
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import HUMAN, OUTPUTS, RATINGS
from tests.apps.rank.ranked_run import SYSTEMS, WORDS, ranked_run
from tests.judging.run_for_tests import output, put, rating, root, run, stripes, write
from tests.report.run_data_for_tests import Parsed

Ranks = tuple[int | None, ...]


@st.composite
def rankings(draw: st.DrawFn) -> SampleRanking:
    count = draw(st.integers(2, 8))
    rank = st.one_of(st.none(), st.integers(1, count))
    ranks = tuple(draw(st.lists(rank, min_size=count, max_size=count)))
    unranked = [at for at, one in enumerate(ranks) if one is None]
    barred = draw(st.sets(st.sampled_from(unranked))) if unranked else set()
    return SampleRanking(ranks, frozenset(barred), draw(st.booleans()))


@pytest.mark.parametrize(
    ("before", "kind", "item", "rank", "after"),
    [
        ((None, None, None), "place", 1, 3, (None, 3, None)),
        ((1, None, None), "place", 2, 1, (1, None, 1)),
        ((1, 2, None), "insert", 2, 1, (2, 3, 1)),
        ((1, 1, None), "insert", 2, 1, (2, 2, 1)),
        ((1, 3, None), "insert", 2, 1, (2, 3, 1)),
        ((2, 3, None), "insert", 2, 3, (1, 3, 2)),  # no room below: the gap above closes
        ((1, 2, 3), "insert", 2, 2, (1, 3, 2)),
        ((1, 2, 3), "better", 2, None, (1, 2, 2)),
        ((1, 2, 3), "better", 0, None, (1, 2, 3)),
        ((1, 2, 3), "worse", 0, None, (2, 2, 3)),
        ((1, 2, 3), "worse", 2, None, (1, 2, 3)),
        ((1, None, 3), "better", 1, None, (1, 2, 3)),
        ((1, None, None), "worse", 1, None, (1, 3, None)),
        ((1, 2, 3), "clear", 1, None, (1, None, 3)),
    ],
)
def test_what_a_key_does(
    before: Ranks, kind: str, item: int, rank: int | None, after: Ranks
) -> None:
    assert apply_action(SampleRanking(before), kind, item, rank) == SampleRanking(after)
    # What cannot be ranked can be ranked after all.
    barred = SampleRanking((1, 2)).bar(0)
    assert barred == SampleRanking((None, 2), frozenset({0}))
    assert (barred.bar(0), barred.place(0, 2)) == (SampleRanking((None, 2)), SampleRanking((2, 2)))
    assert SampleRanking((1, 2)).toggle_impossible().toggle_impossible() == SampleRanking((1, 2))


@given(rankings(), st.data())
def test_an_inserted_image_stands_alone_and_others_keep_their_order(
    ranking: SampleRanking, data: st.DataObject
) -> None:
    count = len(ranking.ranks)
    item = data.draw(st.integers(0, count - 1))
    rank = data.draw(st.integers(1, count))
    after = ranking.insert(item, rank).ranks
    others = {at: one for at, one in enumerate(ranking.ranks) if one is not None and at != item}
    assert all(1 <= (after[at] or 0) <= count for at in [*others, item])
    assert all(after[at] != after[item] for at in others)
    for one, old in others.items():
        for other, older in others.items():
            new = (after[one] or 0) - (after[other] or 0)
            assert (new > 0) - (new < 0) == (old > older) - (old < older)
        assert ((after[one] or 0) < (after[item] or 0)) == (old < rank)


@given(rankings())
def test_places_are_ranks_without_gaps(ranking: SampleRanking) -> None:
    ranked = {at: one for at, one in enumerate(ranking.ranks) if one is not None}
    dense = dict(zip(ranked, rankdata(list(ranked.values()), "dense"), strict=True))
    expected = {} if ranking.impossible else dense
    assert ranking.places == tuple(expected.get(at) for at in range(len(ranking.ranks)))


@given(rankings(), st.data())
def test_no_action_leaves_a_barred_image_with_a_rank(
    ranking: SampleRanking, data: st.DataObject
) -> None:
    count = len(ranking.ranks)
    kind = data.draw(st.sampled_from([*ACTIONS_WITH_RANK, *ACTIONS_ON_IMAGE, "impossible"]))
    item, rank = data.draw(st.integers(0, count - 1)), data.draw(st.integers(1, count))
    after = apply_action(ranking, kind, item, rank)
    assert all(after.ranks[at] is None for at in after.barred)
    assert all(one is None or 1 <= one <= count for one in after.ranks)


def test_complete_is_when_nothing_is_left() -> None:
    barred, impossible = (
        SampleRanking((1, None), frozenset({1})),
        SampleRanking((None,) * 2, impossible=True),
    )
    assert [one.is_complete for one in (SampleRanking((1, 1)), barred, impossible)] == [True] * 3
    assert [SampleRanking(one).is_complete for one in ((1, None), (None,) * 3)] == [False] * 2


UNKNOWN: list[tuple[str, object, object]] = [
    *(("place", 0, rank) for rank in (0, 4, True, 1.0, None)),
    *(("place", item, 1) for item in (3, -1, True, "0")),
    *(("better", None, None), ("clear", [0], None), ("drop table", 0, 1), ("", None, None)),
]


@pytest.mark.parametrize(("kind", "item", "rank"), UNKNOWN)
def test_what_a_page_cannot_ask_for_is_nothing(kind: str, item: object, rank: object) -> None:
    assert apply_action(SampleRanking((None,) * 3), kind, item, rank) is None


def sample(name: str, *systems: str, digest: str = "d") -> RankedSample:
    shown = tuple(HiddenOutput(system, f"{name}/{system}") for system in systems)
    return RankedSample(Task(name, digest, "text_to_image", f"draw {name}"), shown)


def ranker(path: Path, *samples: RankedSample, seed: int = 0) -> RankingApp:
    known = {one.task.sample_id: one for one in samples}
    return RankingApp(path, RankingDraw(samples, known, seed, {}))


@pytest.fixture
def three(tmp_path: Path) -> RankingApp:
    return ranker(tmp_path, *(sample(name, "ash", "elm") for name in ("s1", "s2", "s3")))


def did(ranked: RankingApp, person: str, kind: str, **more: Any) -> tuple[RankingPage, bool]:
    subject = ranked.build_page(person).sample.task.sample_id
    return ranked.act(person, {"kind": kind, "subject": subject, **more})


def test_each_action_is_an_event_with_what_was_shown(three: RankingApp) -> None:
    shown = [[one.system, one.image] for one in three.build_page("ann").outputs]
    did(three, "ann", "place", item=0, rank=1)
    did(three, "ann", "place", item=1, rank=2)
    first, second = three.log.read_events(APP)
    assert first.payload == {
        "shown": shown,
        "sample_digest": "d",
        "ranks": [1, None],
        "barred": [],
        "impossible": False,
    }
    assert (first.base, second.base) == (None, first.id)
    assert (second.subject, second.person, second.payload["ranks"]) == ("s1", "ann", [1, 2])


def test_what_changes_nothing_is_no_event(three: RankingApp) -> None:
    did(three, "ann", "place", item=0, rank=1)
    did(three, "ann", "place", item=0, rank=1)
    did(three, "ann", "explode")
    three.act("ann", {"kind": "place", "subject": "s2", "item": 0, "rank": 2})
    three.act("ann", {"kind": ["place"], "subject": None})
    three.act("ann", {})
    assert len(three.log.read_events(APP)) == 1


def test_next_goes_to_what_is_not_ranked(three: RankingApp) -> None:
    steps = [
        "next",
        "impossible",
        "back",
        "next",
        "impossible",
        "next",
        "impossible",
        *["next"] * 3,
    ]
    places = []
    for kind in steps:
        view, _ = did(three, "ann", kind)
        places.append(view.sample.task.sample_id)
    assert places == ["s2", "s2", "s1", "s3", "s3", "s1", "s1", "s2", "s3", "s3"]
    assert set(view.finished) == {"s1", "s2", "s3"}


def test_the_table_changes_with_what_is_complete(three: RankingApp) -> None:
    steps = [
        did(three, "ann", "place", item=0, rank=1),
        did(three, "ann", "place", item=1, rank=2),
        did(three, "ann", "place", item=1, rank=1),
        did(three, "ann", "next"),
        did(three, "ann", "undo"),
        did(three, "ann", "undo"),
        did(three, "ann", "undo"),
    ]
    assert [changes for _, changes in steps] == [False, True, True, False, True, True, False]
    assert [bool(view.actions) for view, _ in steps][-2:] == [True, False]


def test_a_seed_shuffles_what_was_not_begun_and_what_has_changed_is_ranked_anew(
    tmp_path: Path,
) -> None:
    """The order of images is a person's own, of each sample, and stays."""
    one = sample("s1", *(f"m{at}" for at in range(8)))
    other = RankedSample(replace(one.task, sample_id="t"), one.outputs)
    ann = shuffle_outputs(one, "ann", 0)
    assert sorted(ann, key=lambda image: image.system) == list(one.outputs)
    assert ann not in [
        shuffle_outputs(one, "ben", 0),
        shuffle_outputs(one, "ann", 1),
        shuffle_outputs(other, "ann", 0),
    ]
    assert did(ranker(tmp_path, one), "ann", "place", item=3, rank=1)[0].outputs == ann
    after = ranker(tmp_path, one, seed=1)
    assert after.build_page("ann").outputs == ann
    assert after.build_page("ann").ranking.ranks[3] == 1
    for changed_one in (
        sample("s1", "ash", "elm"),
        RankedSample(replace(one.task, sample_digest="e"), ann),
    ):
        view = ranker(tmp_path, changed_one).build_page("ann")
        assert view.ranking.ranks == (None,) * len(changed_one.outputs)


TWELVE = tuple(f"word{at:02}" for at in range(12))
EDITS = {f"edit{at}": [stripes((at, 100, 100))] for at in range(3)}
SPLITS = ("image_to_image", "text_to_image")


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drawn")
    run(found, EDITS, TWELVE)
    return found


def outputs_of(**images: str | None) -> list[dict[str, object]]:
    return [
        output(name, system, EDITS.get(name, ()), image=image)
        for name in (*EDITS, *TWELVE)
        for system, image in images.items()
    ]


def two(twelve: Path) -> list[dict[str, object]]:
    images = {"ash": stripes((1, 1, 1)), "elm": stripes((2, 2, 2))}
    return outputs_of(**{system: put(twelve, one) for system, one in images.items()})


def draw_of(
    twelve: Path, made: list[dict[str, object]], draw: int = 100, seed: int = 0, splits=SPLITS
) -> RankingDraw:
    table = pa.Table.from_pylist(made, OUTPUTS.schema)
    images = ImageStore(root(twelve) / "pictures")
    tasks = Benchmark(str(twelve / "benchmark")).tasks(images)
    return draw_samples(
        table, tasks, images, choose_count=lambda *_: draw, seed=seed, splits=splits
    )


def ids(draw: RankingDraw) -> list[str]:
    return [sample.task.sample_id for sample in draw.samples]


def test_a_draw_is_in_the_order_of_a_digest_of_the_seed_and_the_id(twelve: Path) -> None:
    order = sorted(TWELVE, key=lambda name: hashlib.sha256(f"7:{name}".encode()).hexdigest())
    found = draw_of(twelve, two(twelve), draw=2, seed=7)
    assert ids(found)[2:] == order[:2]
    assert {name[:4] for name in ids(found)[:2]} == {"edit"}
    assert ids(draw_of(twelve, two(twelve), 9, 7, ["text_to_image"])) == order[:9]
    assert found.left_out == {NotRanked.NOT_DRAWN: 11}


def test_every_sample_is_drawn_as_often_as_any_other(twelve: Path) -> None:
    """Over 500 seeds, how often each of 12 is among 4: as chance would have it."""
    table = pa.Table.from_pylist(two(twelve), OUTPUTS.schema)
    images = ImageStore(root(twelve) / "pictures")
    tasks, drawn = Benchmark(str(twelve / "benchmark")).tasks(images), Counter[str]()
    for seed in range(500):
        some = {"choose_count": lambda *_: 4, "seed": seed, "splits": ["text_to_image"]}
        drawn.update(ids(draw_samples(table, tasks, images, **some)))
    assert len(drawn) == 12
    expected, left = 500 * 4 / 12, 1 - 4 / 12
    far = sum((count - expected) ** 2 for count in drawn.values()) / (expected * left)
    assert far * 11 / 12 < chi2.ppf(0.999, 11)


def test_samples_need_two_images_that_are_there(twelve: Path) -> None:
    made = two(twelve)
    of = {(row["sample_id"], row["system"]): row for row in made}
    of["word00", "ash"].update(outcome="refused", image=None)
    of["word01", "elm"].update(sample_digest="0" * 64)
    of["word02", "elm"].update(image="f" * 64)
    found = draw_of(twelve, made)
    assert not {"word00", "word01", "word02"} & set(ids(found))
    assert len(found.samples) == 12
    assert found.left_out == {
        NotJudged.WITHOUT_IMAGE: 1,
        LeftOut.OTHER_SAMPLE: 1,
        NotRanked.LOST_IMAGE: 1,
        NotRanked.FEW_OUTPUTS: 3,
    }


HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)> \"'`${1}{{2}}&lt;"


def parts(view: RankingPage) -> Parsed:
    return Parsed(render_ranking_page(view, lambda digest: f"/image/{digest[0]}", 5))


def lighthouse(words: str = "a lighthouse") -> RankedSample:
    task = Task(words, "d", "text_to_image", words, (ImageRef("1" * 64),))
    return RankedSample(
        task, (HiddenOutput("zorblatt", "2" * 64), HiddenOutput("quixel", "3" * 64))
    )


def test_texts_of_posts_are_text_and_no_system_is_on_the_page(tmp_path: Path) -> None:
    plain = parts(ranker(tmp_path, lighthouse()).build_page("ann"))
    view = ranker(tmp_path, lighthouse(HOSTILE)).build_page("ann")
    found, page = parts(view), render_ranking_page(view, lambda digest: f"/image/{digest[0]}")
    assert found.words.count(HOSTILE) == 1
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not [name for _, named in found.tags for name in named if name.startswith("on")]
    board_tag = next(named for _, named in found.tags if "board" in (named.get("class") or ""))
    assert (board_tag["data-subject"], board_tag["data-answer"]) == (HOSTILE, "5")
    assert not [name for name in ("zorblatt", "quixel", "2" * 64) if name in page]
    shown = [named["src"] for tag, named in found.tags if tag == "img"]
    assert shown == ["/image/1", *(f"/image/{one.image[0]}" for one in view.outputs)]


def test_ranks_and_progress_are_shown(tmp_path: Path) -> None:
    one = ranker(tmp_path, lighthouse())
    assert "nothing to save yet" in render_ranking_page(one.build_page("ann"), str)
    did(one, "ann", "place", item=0, rank=1)
    view = did(one, "ann", "bar", item=1)[0]
    found = parts(view)
    labels = [named["aria-label"] for tag, named in found.tags if tag == "article"]
    assert labels == ["Image A, rank 1", "Image B, cannot be ranked"]
    text = found.words
    assert view.saved is not None
    for words in ("Sample 1 of 1", "1 ranked · all ranked, thank you", f"{view.saved:%H:%M} UTC"):
        assert words in text


def test_there_is_a_card_of_its_own_for_each_of_many_images(tmp_path: Path) -> None:
    one = ranker(tmp_path, sample("s", *(f"m{at}" for at in range(30))))
    tags = Parsed(render_ranking_page(one.build_page("ann"), str)).tags
    labels = {named["aria-label"] for tag, named in tags if tag == "article"}
    assert len(labels) == len([1 for _, named in tags if "data-rank" in named]) == 30
    assert "Image D2, not ranked" in labels


Row = dict[str, Any]


def row(sample: str, rater: str, system: str, rank: int | None) -> Row:
    key = {"sample_id": sample, "rater": rater, "system": system}
    return {**key, "rank": rank, "cannot_rank": rank is None, "score": None}


@pytest.fixture
def ranked(tmp_path: Path) -> RankingApp:
    return ranker(tmp_path, *(sample(name, "ash", "elm", "oak") for name in ("s1", "s2")))


def rows(tmp_path: Path) -> list[Row]:
    found: list[Row] = pq.read_table(tmp_path / "human.parquet").to_pylist()
    return found


def place(ranked: RankingApp, person: str, **ranks: int) -> None:
    shown = [one.system for one in ranked.build_page(person).outputs]
    for system, at in ranks.items():
        did(ranked, person, "place", item=shown.index(system), rank=at)


def test_rows_are_ranks_of_systems(tmp_path: Path, ranked: RankingApp) -> None:
    place(ranked, "ann", ash=3, elm=1, oak=3)
    place(ranked, "ben", ash=1, elm=2)
    did(ranked, "cy", "impossible")
    assert ranked.write() == RankingTotals(tmp_path / "human.parquet", 2, 0, {})
    nothing = [row("s1", "cy", system, None) for system in ("ash", "elm", "oak")]
    ann = [row("s1", "ann", name, rank) for name, rank in {"ash": 2, "elm": 1, "oak": 2}.items()]
    assert rows(tmp_path) == [*ann, *nothing]
    assert pq.read_schema(tmp_path / "human.parquet").equals(HUMAN.schema)


def test_ranks_from_elsewhere_stay(tmp_path: Path, ranked: RankingApp) -> None:
    elsewhere = [row("s1", "zoe", "ash", 1), row("s2", "ann", "ash", 4), row("gone", "x", "y", 1)]
    mine = [row("s1", "ann", "ash", 9)]
    table = pa.Table.from_pylist([*elsewhere, *mine], HUMAN.schema)
    pq.write_table(table, tmp_path / "human.parquet")
    place(ranked, "ann", ash=1, elm=2, oak=3)
    assert ranked.write().kept == 3
    found = rows(tmp_path)
    assert [one for one in elsewhere if one not in found] == []
    assert row("s1", "ann", "ash", 1) in found
    assert mine[0] not in found
    assert len(found) == 6


def test_what_is_taken_back_leaves_the_table(tmp_path: Path, ranked: RankingApp) -> None:
    did(ranked, "ann", "next")
    assert ranked.write().rankings == 0
    assert not (tmp_path / "human.parquet").exists()
    did(ranked, "ann", "back")
    did(ranked, "ann", "impossible")
    assert ranked.write().rankings == 1
    did(ranked, "ann", "undo")
    assert ranked.write().rankings == 0
    assert rows(tmp_path) == []


def test_ranks_of_images_that_are_gone_are_counted(tmp_path: Path, ranked: RankingApp) -> None:
    place(ranked, "ann", ash=1, elm=2, oak=3)
    other = ranker(tmp_path, sample("s1", "elm", "oak"))
    assert other.write().left_out == {LeftOut.OTHER_OUTPUT: 1}
    assert rows(tmp_path) == [row("s1", "ann", "elm", 2), row("s1", "ann", "oak", 3)]
    anew = ranker(tmp_path, sample("s1", "ash", "elm", "oak", digest="e"))
    assert anew.write().left_out == {LeftOut.OTHER_OUTPUT: 3}


def test_a_table_that_cannot_be_read_is_not_written_over(
    tmp_path: Path, ranked: RankingApp
) -> None:
    (tmp_path / "human.parquet").write_text("ranks, by hand", "utf-8")
    did(ranked, "ann", "impossible")
    with pytest.raises(RunError, match="is not a table of human"):
        ranked.write()
    assert (tmp_path / "human.parquet").read_text("utf-8") == "ranks, by hand"


FEW = SYSTEMS[:3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ranked_run(tmp_path, systems=FEW)
    return tmp_path


def opened(folder: Path, draw: int = 100, splits: tuple[str, ...] = ()) -> RankingApp:
    config = folder / "evaluation.yaml"
    return open_ranking(config, runs=folder / "runs", draw=draw, splits=splits)


def said(folder: Path, show: object, ranks: RankingApp) -> str:
    console = Console(width=300)
    with console.capture() as captured:
        show(console, ranks)  # type: ignore[operator]
    return captured.get()


def test_ranks_of_the_page_are_what_agree_reads(folder: Path) -> None:
    ranks = opened(folder)
    for _ in range(5):
        place(ranks, "ann", **{system: at for at, system in enumerate(FEW, 1)})
        did(ranks, "ann", "next")
    table = ranks.write()
    assert (table.rankings, table.kept) == (5, 0)
    assert pq.read_table(table.path).num_rows == 15
    marks = [rating(name, system, 9 - at) for name in WORDS for at, system in enumerate(FEW)]
    write(folder, RATINGS, marks)
    found = measure_agreement(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    assert found.merged.people.consensus.ranking == FEW
    assert found.merged.judges.with_consensus["mira"].tau == pytest.approx(1)
    assert "5 rankings in" in said(folder, show_ranking_files, ranks)


def test_only_the_splits_that_were_named_are_drawn(folder: Path) -> None:
    assert len(opened(folder).draw.samples) == 5
    one = opened(folder, draw=1)
    splits = [sample.task.split for sample in one.draw.samples]
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
        ranks = open_ranking(config, runs=runs, width=0.08)
        count = len(ranks.draw.samples)
        assert count == (expected or human_corrected(marks, rows).n_for(0.08))
        told = said(tmp_path, show_draw, ranks)
        assert f"to rank: {count} of text_to_image for an interval of ±0.08, {why} (seed" in told
    with pytest.raises(ScoreError, match="width is 0: expected half an interval"):
        open_ranking(config, runs=runs, width=0)


def test_what_cannot_be_drawn_or_served_is_refused(folder: Path, tmp_path: Path) -> None:
    """A split of fewer than ten samples is drawn whole, whatever the width."""
    config = folder / "evaluation.yaml"
    ranks = open_ranking(config, runs=folder / "runs", width=0.03, splits=("text_to_image",))
    told = said(folder, show_draw, ranks)
    assert "3 of text_to_image for an interval of ±0.03, which takes 10 samples at least" in told
    both = CliRunner().invoke(app, ["rank", str(config), "--draw", "5", "--width", "0.1"])
    assert str(both.exception) == "--draw and --width both say how many samples: leave out one"
    with pytest.raises(RunError, match="can be reached from other machines"):
        rank(ranks, server=ServerAddress("0.0.0.0", 0), on_ready=pytest.fail)  # noqa: S104 - what is refused
    alone = tmp_path / "alone"
    alone.mkdir()
    ranked_run(alone, systems=FEW[:1])
    with pytest.raises(RunError, match=r"no sample .* by two systems \(5 few_outputs\)"):
        opened(alone)
