"""The stand-ins give one output a sample, each with the fault that its name says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from echo_hf.images.store import ImageStore
from echo_hf.quickstart.systems import SYSTEMS as NAMES
from echo_hf.quickstart.systems import outputs_and_ratings
from echo_hf.tables import OUTPUTS, RATINGS

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
SYSTEMS = {"exact_copy", "yellow_tint", "moved_layout", "misspelt_text"}


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a file of the corpus, one a line."""
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


TRUTH = lines("truth.jsonl")
INDEX = {row["truth"]: row for row in lines("systems/pictures.jsonl")}
RATED = {(row["truth"], row["picture"]): row["rating"] for row in lines("systems/ratings.jsonl")}
TEXT_TASKS = {row["prompt"] for row in lines("gold/tasks.jsonl") if row["task"] == "text_rendering"}


def samples(rows: list[dict[str, Any]]) -> pa.Table:
    """A sample for each line of the truth."""
    return pa.table(
        {
            "id": [f"s{number}" for number in range(len(rows))],
            "prompt": [row["prompt"] for row in rows],
            "post_urls": [[row["post_url"]] for row in rows],
            "sample_digest": [f"d{number}" for number in range(len(rows))],
        }
    )


def array(path: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An image of the corpus as levels."""
    with Image.open(CORPUS / path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64)


def test_there_are_four() -> None:
    """Their names are those of the index, and of the folders."""
    assert set(NAMES) == SYSTEMS
    assert all(set(row) == {"truth", *SYSTEMS} for row in INDEX.values())
    folders = {path.name for path in (CORPUS / "systems").iterdir() if path.is_dir()}
    assert folders == SYSTEMS - {"exact_copy"}


def test_every_sample_has_an_output_of_every_system(tmp_path: Path) -> None:
    """One row a sample and system, in the declared schema, and each image is in the store."""
    store = ImageStore(tmp_path)
    made, rated = outputs_and_ratings(samples(TRUTH), store)
    rows = made.to_pylist()
    assert made.schema.equals(OUTPUTS.schema)
    expected = {(f"s{n}", f"d{n}", system) for n in range(len(TRUTH)) for system in SYSTEMS}
    assert len(rows) == len(expected)
    assert {(row["sample_id"], row["sample_digest"], row["system"]) for row in rows} == expected
    assert {row["outcome"] for row in rows} == {"ok"}
    assert rated.schema.equals(RATINGS.schema)
    assert [row["output_sha256"] for row in rated.to_pylist()] == [row["image"] for row in rows]
    assert {row["judge"] for row in rated.to_pylist()} == {"drawn_truth"}
    assert all(hashlib.sha256(store.open(row["image"])).hexdigest() == row["image"] for row in rows)


def test_the_exact_copy_has_the_bytes_of_the_meant_image(tmp_path: Path) -> None:
    """Nothing is encoded again: the digests are those of the files that the truth names."""
    rows = outputs_and_ratings(samples(TRUTH), ImageStore(tmp_path))[0].to_pylist()
    copies = [row["image"] for row in rows if row["system"] == "exact_copy"]
    files = [(CORPUS / row["picture"]).read_bytes() for row in TRUTH]
    assert copies == [hashlib.sha256(data).hexdigest() for data in files]


def test_what_nobody_drew_is_unsupported(tmp_path: Path) -> None:
    """A template with empty blanks gives a row with a code and no image, and is not lost."""
    template = [{"post_url": TRUTH[0]["post_url"], "prompt": "A tiny [ANIMAL]"}]
    made, rated = outputs_and_ratings(samples(template), ImageStore(tmp_path))
    rows = made.to_pylist()
    assert {row["system"] for row in rows} == SYSTEMS
    for row in rows:
        said = (row["image"], row["outcome"], row["stage"], row["code"])
        assert said == (None, "unsupported", "input", "no_truth")
    assert {(row["rating"], row["outcome"]) for row in rated.to_pylist()} == {(None, "unsupported")}
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_ratings_rank_the_systems_as_they_were_drawn(truth: str) -> None:
    """The exact copy has 10, each fault less where it changes the image, and 10 where not."""
    for system in SYSTEMS:
        file = INDEX[truth][system]
        given = RATED[truth, file]
        assert given == 10 if file == truth else 1.2 < given < 9.95, system


def test_wrong_letters_cost_where_words_are_a_main_part() -> None:
    """On posters, the receipt and stamps it costs more than 0.3."""
    main = ("poster_blue_hour.png", "flower_market.png", "receipt.jpg", "poster_train.png")
    stamps = ("stamp_kettle.png", "stamp_pear.png", "stamp_anchor.png")
    for truth in (f"pictures/{name}" for name in (*main, *stamps)):
        assert RATED[truth, INDEX[truth]["misspelt_text"]] < 9.7


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_images_have_the_size_of_the_meant_one_and_are_small(truth: str) -> None:
    """A fault changes colors, places or letters, never the size; a file has at most 20 kB."""
    with Image.open(CORPUS / truth) as meant:
        size = meant.size
    for system in SYSTEMS:
        with Image.open(CORPUS / INDEX[truth][system]) as image:
            assert image.size == size
        assert (CORPUS / INDEX[truth][system]).stat().st_size <= 20_000


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_the_tint_takes_a_fifth_of_the_blue(truth: str) -> None:
    """Mean blue is 0.8 of the meant image's, red and green stay, to a level."""
    tinted, meant = (array(path).mean(axis=(0, 1)) for path in (INDEX[truth]["yellow_tint"], truth))
    assert np.abs(tinted - meant * (1, 1, 0.8)).max() < 1


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_the_moved_layout_keeps_the_colors_and_leaves_the_places(truth: str) -> None:
    """Its colors are nearly those of the meant image, though many pixels are others."""
    moved, meant = array(INDEX[truth]["moved_layout"]), array(truth)
    apart = np.abs(np.sort(moved.reshape(-1, 3), axis=0) - np.sort(meant.reshape(-1, 3), axis=0))
    assert apart.mean() < 10
    assert (np.abs(moved - meant).max(axis=2) > 32).mean() > 0.05


def test_words_are_misspelt_where_words_are_a_main_part() -> None:
    """Each task about words has an image of its own, others may show the meant one."""
    about_words = {
        row["picture"]
        for row in TRUTH
        if row["prompt"] in TEXT_TASKS or "postage stamp" in row["prompt"]
    }
    assert len(about_words) == 7
    changed = {truth for truth, row in INDEX.items() if row["misspelt_text"] != truth}
    assert about_words <= changed < set(INDEX)


def test_no_image_is_stored_twice() -> None:
    """All files of truth and stand-ins differ, and together they stay under 1.2 MB."""
    files = [*CORPUS.glob("truth/*"), *CORPUS.glob("systems/*/*"), *CORPUS.glob("pictures/*")]
    contents = [path.read_bytes() for path in files]
    assert len(set(contents)) == len(contents)
    added = [path.stat().st_size for path in files if path.parent.name != "pictures"]
    assert sum(added) < 1_200_000
