"""Which samples are drawn, and in which order images are shown."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from scipy.stats import chisquare

from echo_hf.apps.rank.draw import Draw, RankedSample, ShownOutput, drawn_samples, shuffled
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut, NotJudged, NotRanked
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import OUTPUTS
from tests.judging.run_for_tests import output, put, root, run, stripes

WORDS = tuple(f"word{at:02}" for at in range(12))
EDITS = {f"edit{at}": [stripes((at, 100, 100))] for at in range(3)}
SPLITS = ("image_to_image", "text_to_image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of three edits and twelve prompts."""
    found = tmp_path_factory.mktemp("drawn")
    run(found, EDITS, WORDS)
    return found


def rows(folder: Path, **images: str | None) -> list[dict[str, object]]:
    """Outputs of systems of all samples; a system's image is the same everywhere."""
    return [
        output(name, system, EDITS.get(name, ()), image=image)
        for name in (*EDITS, *WORDS)
        for system, image in images.items()
    ]


def two(folder: Path) -> list[dict[str, object]]:
    """Two systems that made all."""
    return rows(folder, ash=put(folder, stripes((1, 1, 1))), elm=put(folder, stripes((2, 2, 2))))


def draw_of(
    folder: Path, made: list[dict[str, object]], draw: int = 100, seed: int = 0, splits=SPLITS
) -> Draw:
    """The draw from rows of outputs."""
    table = pa.Table.from_pylist(made, OUTPUTS.schema)
    images = ImageStore(root(folder) / "pictures")
    tasks = Benchmark(str(folder / "benchmark")).tasks(images)
    return drawn_samples(table, tasks, images, draw=draw, seed=seed, splits=splits)


def ids(draw: Draw) -> list[str]:
    """The samples of a draw."""
    return [sample.task.sample_id for sample in draw.samples]


def test_a_draw_is_in_the_order_of_a_digest_of_the_seed_and_the_id(folder: Path) -> None:
    """Split by split; a larger draw begins with the smaller one."""
    order = sorted(WORDS, key=lambda name: hashlib.sha256(f"7:{name}".encode()).hexdigest())
    found = draw_of(folder, two(folder), draw=2, seed=7)
    assert ids(found)[2:] == order[:2]
    assert {name[:4] for name in ids(found)[:2]} == {"edit"}
    assert ids(draw_of(folder, two(folder), 9, 7, ["text_to_image"])) == order[:9]
    assert found.left_out == {NotRanked.NOT_DRAWN: 11}


def test_samples_need_two_images_that_are_there(folder: Path) -> None:
    """Refused, of an older sample, lost from the disk: each is counted by its reason."""
    made = two(folder)
    of = {(row["sample_id"], row["system"]): row for row in made}
    of["word00", "ash"].update(outcome="refused", image=None)
    of["word01", "elm"].update(sample_digest="0" * 64)
    of["word02", "elm"].update(image="f" * 64)
    found = draw_of(folder, made)
    assert not {"word00", "word01", "word02"} & set(ids(found))
    assert len(found.samples) == 12
    assert found.left_out == {
        NotJudged.WITHOUT_IMAGE: 1,
        LeftOut.OTHER_SAMPLE: 1,
        NotRanked.LOST_IMAGE: 1,
        NotRanked.FEW_OUTPUTS: 3,
    }


def test_an_order_is_a_persons_own_and_stays(folder: Path) -> None:
    """The same for the same person, sample and seed; another where one of them is another."""
    sample = RankedSample(
        Task("s", "d", "text_to_image", "draw"),
        tuple(ShownOutput(f"m{at}", str(at)) for at in range(8)),
    )
    other = RankedSample(Task("t", "d", "text_to_image", "draw"), sample.outputs)
    ann = shuffled(sample, "ann", 0)
    assert ann == shuffled(sample, "ann", 0)
    assert sorted(ann, key=lambda one: one.system) == list(sample.outputs)
    orders = [shuffled(sample, "ben", 0), shuffled(sample, "ann", 1), shuffled(other, "ann", 0)]
    assert ann not in orders


def test_no_system_is_shown_first_more_often() -> None:
    """Of 2000 people, by a chi-square test with a fixed outcome."""
    outputs = tuple(ShownOutput(f"m{at}", str(at)) for at in range(8))
    sample = RankedSample(Task("s", "d", "text_to_image", "draw"), outputs)
    for place in (0, 7):
        seen = Counter(shuffled(sample, f"p{n}", 0)[place].system for n in range(2000))
        assert len(seen) == 8
        assert chisquare(list(seen.values())).pvalue > 0.01
