"""The stand-ins give one output a sample, with the fault that each is named after."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from echo_hf.images.store import ImageStore
from echo_hf.quickstart.systems import SYSTEMS as NAMES
from echo_hf.quickstart.systems import make_outputs_and_ratings
from echo_hf.quickstart.truth import read_truths
from echo_hf.tables import OUTPUTS, RATINGS

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
Row = dict[str, Any]
SYSTEMS = {"exact_copy", "yellow_tint", "moved_layout", "misspelt_text"}


def lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


TRUTH = lines("truth.jsonl")
INDEX = {row["truth"]: row for row in lines("systems/pictures.jsonl")}
RATED = {(row["truth"], row["picture"]): row["rating"] for row in lines("systems/ratings.jsonl")}


def samples(rows: list[Row]) -> pa.Table:
    made = [
        {"id": f"s{n}", "prompt": row["prompt"], "post_urls": [row["post_url"]]}
        | {"sample_digest": f"d{n}", "splits": ["text_to_image", "analysis"]}
        for n, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(made)


def test_there_are_four() -> None:
    assert set(NAMES) == SYSTEMS
    assert all(set(row) == {"truth", *SYSTEMS} for row in INDEX.values())
    folders = {path.name for path in (CORPUS / "systems").iterdir() if path.is_dir()}
    assert folders == SYSTEMS - {"exact_copy"}


def test_every_sample_has_an_output_of_every_system(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    made, rated = make_outputs_and_ratings(samples(TRUTH), store)
    rows = made.to_pylist()
    assert made.schema.equals(OUTPUTS.schema)
    expected = {(f"s{n}", f"d{n}", system) for n in range(len(TRUTH)) for system in SYSTEMS}
    assert len(rows) == len(expected)
    assert {(row["sample_id"], row["sample_digest"], row["system"]) for row in rows} == expected
    assert {row["outcome"] for row in rows} == {"ok"}
    assert rated.schema.equals(RATINGS.schema)
    assert [row["output_sha256"] for row in rated.to_pylist()] == [row["image"] for row in rows]
    assert {row["judge"] for row in rated.to_pylist()} == {"drawn_truth"}
    assert {row["split"] for row in rated.to_pylist()} == {"text_to_image"}
    assert all(hashlib.sha256(store.open(row["image"])).hexdigest() == row["image"] for row in rows)


def test_what_nobody_drew_is_unsupported(tmp_path: Path) -> None:
    template = [{"post_url": TRUTH[0]["post_url"], "prompt": "A tiny [ANIMAL]"}]
    made, rated = make_outputs_and_ratings(samples(template), ImageStore(tmp_path))
    rows = made.to_pylist()
    assert {row["system"] for row in rows} == SYSTEMS
    for row in rows:
        said = (row["image"], row["outcome"], row["stage"], row["code"])
        assert said == (None, "unsupported", "input", "no_truth")
    assert {(row["rating"], row["outcome"]) for row in rated.to_pylist()} == {(None, "unsupported")}
    assert not any(tmp_path.iterdir())


def test_ratings_and_sizes_are_as_the_images_were_drawn() -> None:
    for truth, files in INDEX.items():
        with Image.open(CORPUS / truth) as meant:
            size = meant.size
        for system in SYSTEMS:
            file = files[system]
            given = RATED[truth, file]
            assert given == 10 if file == truth else 1.2 < given < 9.95, system
            with Image.open(CORPUS / file) as image:
                assert image.size == size
            assert (CORPUS / file).stat().st_size <= 20_000


TRUTHS = read_truths()


def test_white_space_and_the_order_of_posts_do_not_matter() -> None:
    row = next(row for row in lines("truth.jsonl") if "paper boat" in row["prompt"])
    others = ["https://x.com/i/status/1", row["post_url"]]
    prompt = row["prompt"].replace("\n", " \r\n\t")
    assert TRUTHS.find_image({"post_urls": others, "prompt": prompt}) == "pictures/paper_boat.png"
    assert TRUTHS.find_image({"post_urls": others[:1], "prompt": prompt}) is None
    assert TRUTHS.find_image({"post_urls": others, "prompt": prompt + "!"}) is None
