"""`echo-hf rank` from a run's folder, as far as it goes without a page."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from echo_hf.apps.page import Place
from echo_hf.apps.rank.rank import Ranks, rank, ranks_of
from echo_hf.cli.evaluation_view import show_draw, show_written
from echo_hf.errors import EchoError, RunError, StoreError
from echo_hf.judging.agreement import agree
from echo_hf.tables import RATINGS
from tests.apps.rank.ranked_run import SYSTEMS, WORDS, ranked_run
from tests.apps.rank.test_session import did
from tests.judging.run_for_tests import rating, root, run, write

FEW = SYSTEMS[:3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five samples with the outputs of three systems."""
    ranked_run(tmp_path, systems=FEW)
    return tmp_path


def opened(folder: Path, draw: int = 100, splits: tuple[str, ...] = ()) -> Ranks:
    """The run, to be ranked."""
    config = folder / "evaluation.yaml"
    return ranks_of(config, runs=folder / "runs", draw=draw, splits=splits)


def said(folder: Path, show: object, ranks: Ranks) -> str:
    """What the terminal says."""
    console = Console(width=300)
    with console.capture() as captured:
        show(console, ranks)  # type: ignore[operator]
    return captured.get()


def test_ranks_of_the_page_are_what_agree_reads(folder: Path) -> None:
    """A judge that rates as two people rank agrees with them fully."""
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
    """Two edits and three prompts; one of each split, or of one split alone."""
    assert len(opened(folder).ranker.draw.samples) == 5
    one = opened(folder, draw=1).ranker.draw.samples
    assert [sample.task.split for sample in one] == ["image_to_image", "text_to_image"]
    edits = opened(folder, splits=("image_to_image",))
    assert len(edits.ranker.draw.samples) == 2
    assert "to rank: 2 of image_to_image (seed 0)" in said(folder, show_draw, edits)


def test_what_is_not_ranked_is_told_with_its_reason(folder: Path) -> None:
    """Two prompts and one edit are not drawn."""
    told = said(folder, show_draw, opened(folder, draw=1))
    assert "not ranked: 3 not_drawn: enough samples of its split were drawn before it" in told


def test_a_split_that_does_not_exist_is_one_line(folder: Path) -> None:
    """With the ones that do."""
    with pytest.raises(RunError, match=r"unknown split 'words'; .*known: image_to_image"):
        opened(folder, splits=("words",))


def test_without_outputs_there_is_nothing_to_rank(tmp_path: Path) -> None:
    """It is said what makes them."""
    run(tmp_path, {}, ("word0",))
    with pytest.raises(RunError, match=r"there are no outputs in .*echo-hf generate"):
        opened(tmp_path)


def test_one_system_cannot_be_ranked(tmp_path: Path) -> None:
    """No sample has images by two, and that is counted."""
    ranked_run(tmp_path, systems=FEW[:1])
    with pytest.raises(RunError, match=r"no sample .* by two systems \(5 few_outputs\)"):
        opened(tmp_path)


def test_a_damaged_log_is_one_line_before_anything_is_shown(folder: Path) -> None:
    """It stays as it is."""
    (root(folder) / "events.sqlite").write_text("no log" * 1000, "utf-8")
    with pytest.raises(StoreError, match="is not a readable log of events"):
        opened(folder).write()


def test_a_page_for_strangers_is_refused(folder: Path) -> None:
    """Before a port is taken; where gradio is not here, that is said first."""
    place = Place("0.0.0.0", 0)  # noqa: S104 - what is refused
    with pytest.raises(EchoError, match=r"can be reached from other machines|echo-hf"):
        rank(opened(folder), place=place, ready=pytest.fail)
