"""The judge of the bundled corpus: right pictures first, each fault below, nothing else rated."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from PIL import Image

from echo_hf.errors import EchoError, TableError
from echo_hf.images.store import PictureStore
from echo_hf.quickstart.reference_judge import closeness, drawn_truth, pixels
from echo_hf.quickstart.systems import outputs
from echo_hf.tables import OUTPUTS, RATINGS

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
TRUTH: list[dict[str, Any]] = [
    json.loads(line) for line in (CORPUS / "truth.jsonl").read_text("utf-8").splitlines()
]
INDEX: dict[str, dict[str, str]] = {
    row["truth"]: row
    for row in map(json.loads, (CORPUS / "systems/pictures.jsonl").read_text("utf-8").splitlines())
}
FAULTS = ("yellow_tint", "moved_layout", "misspelt_text")
# What the posts show as wrong, and some reply says so, with the picture that was meant.
WRONG = {
    "fox_yellow.png": "pictures/fox_teal.png",
    "poster_blue_huor.png": "pictures/poster_blue_hour.png",
    "lake_night.jpg": "truth/lake_night_same_shore.png",
    "cat_rain.jpg": "truth/cat_one_tail.png",
    "portrait_astronaut.png": "truth/astronaut_her_face.png",
    "mug_logo.png": "truth/mug_yellow_sun.png",
    "cart_restored.jpg": "truth/cart_gelati.png",
    "hands_six.png": "pictures/hands_five.png",
    "balloons_square.png": "pictures/balloons_wide.png",
}


def samples(rows: list[dict[str, Any]]) -> pa.Table:
    """A Benchmark sample for each line of the truth."""
    return pa.table(
        {
            "id": [f"s{number}" for number in range(len(rows))],
            "prompt": [row["prompt"] for row in rows],
            "post_urls": [[row["post_url"]] for row in rows],
            "quality": ["Benchmark"] * len(rows),
            "sample_digest": [f"d{number}" for number in range(len(rows))],
        }
    )


def one_output(**values: Any) -> pa.Table:
    """An output of the first sample, with some values of its own."""
    row = {"sample_id": "s0", "system": "mine", "sample_digest": "d0", "outcome": "ok", **values}
    return pa.Table.from_pylist([row], OUTPUTS.schema)


def only(table: pa.Table) -> dict[str, Any]:
    """The one row of a table."""
    [row] = table.to_pylist()
    return dict(row)


def picture(path: str) -> Any:
    """A picture of the corpus as an array."""
    return pixels((CORPUS / path).read_bytes())


def jpeg(array: Any) -> Any:
    """The array as it comes back from a JPEG of quality 85."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, "JPEG", quality=85)
    return pixels(file.getvalue())


def on_scale(close: float) -> float:
    """The rating that stands for a closeness."""
    return 1 + 9 * close


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PictureStore:
    """A folder of pictures for all tests here."""
    return PictureStore(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def rated(store: PictureStore) -> pa.Table:
    """All outputs of the stand-ins, rated."""
    asked = samples(TRUTH)
    return drawn_truth(asked, outputs(asked, store), store)


def by_system(rated: pa.Table) -> dict[str, dict[str, float]]:
    """Ratings by meant picture and system."""
    found: dict[str, dict[str, float]] = {}
    for row in rated.to_pylist():
        meant = TRUTH[int(row["sample_id"][1:])]["picture"]
        found.setdefault(meant, {})[row["system"]] = row["rating"]
    return found


def test_rows_say_who_rated_what(rated: pa.Table) -> None:
    """The schema is that of ratings; judge, digests and the limit to the corpus stand in it."""
    assert rated.schema.equals(RATINGS.schema)
    assert rated.num_rows == 4 * len(TRUTH)
    for row in rated.to_pylist():
        assert (row["judge"], row["rubric"], row["repeat"]) == ("drawn_truth", "overall", 0)
        assert row["outcome"] == "ok"
        assert row["sample_digest"] == "d" + row["sample_id"][1:]
        said = json.loads(row["provenance"])
        assert said["rates"] == "the bundled corpus only"
        assert said["truth"] == TRUTH[int(row["sample_id"][1:])]["picture"]
        assert row["explanation"].startswith("closeness ")


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_systems_rank_as_they_were_drawn(truth: str, rated: pa.Table) -> None:
    """The exact copy has 10, each fault less where it changes the picture, and 10 where not."""
    given = by_system(rated)[truth]
    assert given["exact_copy"] == 10
    for system in FAULTS:
        changed = INDEX[truth][system] != truth
        assert 1 < given[system] < 9.95 if changed else given[system] == 10, system


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_no_fault_is_as_bad_as_a_blank_sheet(truth: str, rated: pa.Table) -> None:
    """White, black, grey and the picture's mean colour are rated 1, below every stand-in."""
    meant = picture(truth)
    mean = meant.mean(axis=(0, 1)).round()
    for colour in ((255, 255, 255), (0, 0, 0), (128, 128, 128), mean):
        blank = np.broadcast_to(np.array(colour, np.uint8), meant.shape)
        assert on_scale(closeness(blank, meant)) == pytest.approx(1)
    assert min(by_system(rated)[truth].values()) > 1.2


@pytest.mark.parametrize("truth", INDEX, ids=lambda path: Path(path).stem)
def test_encoding_again_costs_little(truth: str, rated: pa.Table) -> None:
    """A JPEG of the meant picture stays above 9.5, and above a tint and a moved layout."""
    meant = picture(truth)
    again = on_scale(closeness(jpeg(meant), meant))
    assert 9.5 < again < 10
    given = by_system(rated)[truth]
    assert max(given["yellow_tint"], given["moved_layout"]) < again


def test_wrong_letters_cost_where_words_are_a_main_part(rated: pa.Table) -> None:
    """On posters, the receipt and stamps it costs more than 0.3, which no JPEG does."""
    given = by_system(rated)
    main = ("poster_blue_hour.png", "flower_market.png", "receipt.jpg", "poster_train.png")
    stamps = ("stamp_kettle.png", "stamp_pear.png", "stamp_anchor.png")
    assert all(given[f"pictures/{name}"]["misspelt_text"] < 9.7 for name in (*main, *stamps))


@pytest.mark.parametrize("wrong", WRONG)
def test_what_replies_complain_about_costs(wrong: str) -> None:
    """A picture of the posts with a known fault is visibly below the meant one's JPEG."""
    meant = picture(WRONG[wrong])
    assert closeness(picture(f"pictures/{wrong}"), meant) < closeness(jpeg(meant), meant) - 0.05


def test_any_system_can_be_rated(store: PictureStore) -> None:
    """An output that no stand-in made, in another format and size, gets a rating of its own."""
    truth = Image.open(CORPUS / TRUTH[0]["picture"]).convert("RGB")
    file = io.BytesIO()
    truth.resize((640, 640), Image.Resampling.BICUBIC).save(file, "WEBP", lossless=True)
    digest = store.put(file.getvalue())
    row = only(drawn_truth(samples(TRUTH), one_output(image=digest), store))
    assert (row["system"], row["output_sha256"], row["outcome"]) == ("mine", digest, "ok")
    assert 9 < row["rating"] < 10


def test_a_sample_of_other_posts_is_refused(store: PictureStore) -> None:
    """Nobody knows the right picture for a real post, so the message names sample and limit."""
    foreign = [{"prompt": TRUTH[0]["prompt"], "post_url": "https://x.com/i/status/1"}]
    with pytest.raises(EchoError, match=r"sample 's1' .*/status/1'\]: .* bundled corpus only"):
        drawn_truth(samples([TRUTH[0], *foreign]), OUTPUTS.empty(), store)


def test_an_output_of_no_sample_is_refused(store: PictureStore) -> None:
    """An output that names another benchmark's sample is no output to leave out silently."""
    with pytest.raises(EchoError, match="'mine' is of sample 's9'"):
        drawn_truth(samples(TRUTH[:2]), one_output(sample_id="s9"), store)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"outcome": "refused"}, "refused"),
        ({"outcome": "unsupported"}, "unsupported"),
        ({"outcome": "ok"}, "no_image"),
        ({"image": "TRUTH", "sample_digest": "of another prompt"}, "other_digest"),
    ],
)
def test_without_a_rating_there_is_a_reason(
    values: dict[str, str], why: str, store: PictureStore
) -> None:
    """No picture, or one for another prompt: a null with its reason, and the row stays."""
    digest = store.put((CORPUS / TRUTH[0]["picture"]).read_bytes())
    given = {**values, **({"image": digest} if "image" in values else {})}
    row = only(drawn_truth(samples(TRUTH), one_output(**given), store))
    assert (row["rating"], row["outcome"], row["system"]) == (None, why, "mine")


def test_a_task_without_a_meant_picture_is_not_rated(store: PictureStore) -> None:
    """A template with empty blanks is of the corpus, but nothing is drawn for it."""
    template = [{"post_url": TRUTH[0]["post_url"], "prompt": "A tiny [ANIMAL]"}]
    digest = store.put((CORPUS / TRUTH[0]["picture"]).read_bytes())
    row = only(drawn_truth(samples(template), one_output(image=digest), store))
    assert (row["rating"], row["outcome"]) == (None, "no_truth")


def test_datasets_are_read_like_tables(store: PictureStore) -> None:
    """Samples and outputs may come from a release and from a run folder."""
    asked = samples(TRUTH[:2])
    made = outputs(asked, store)
    assert drawn_truth(Dataset(asked), Dataset(made), store).equals(drawn_truth(asked, made, store))


def test_a_missing_column_is_named(store: PictureStore) -> None:
    """Outputs without pictures are no outputs."""
    made = one_output().drop_columns(["image"])
    with pytest.raises(TableError, match="'image'"):
        drawn_truth(samples(TRUTH), made, store)


def test_every_picture_is_loaded_the_one_way() -> None:
    """A camera's turn is made, and 16 bits are rounded: black, the middle grey, and white."""
    file, turned = io.BytesIO(), Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(np.full((2, 4), 32_896, np.uint16)).save(file, "PNG", exif=turned)
    assert pixels(file.getvalue()).tolist() == [[[128] * 3] * 2] * 4
