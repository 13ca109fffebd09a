"""Rows with digests become Parquet files with the images themselves."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from PIL import Image

from echo_hf.errors import ImageError
from echo_hf.hub.parquet import SHARD_BYTES, write_shards
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, RATINGS, SAMPLES, release_features


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    """The rows of some Parquet files, as pyarrow reads them."""
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_every_image_keeps_its_bytes_and_is_named_by_digest_and_format(
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    drawings: Mapping[str, bytes],
) -> None:
    """An image is embedded as the bytes that were stored, whichever column it is in."""
    written = write_shards(tmp_path, configs["analysis"], SAMPLES, images, SHARD_BYTES)
    first, second, third = rows_of(written.paths)
    png, jpg, webp = (
        {"bytes": drawings[name], "path": f"{hashlib.sha256(drawings[name]).hexdigest()}.{name}"}
        for name in ("png", "jpg", "webp")
    )
    assert [row["input_images"] for row in (first, second, third)] == [[jpg], [], []]
    assert [row["output_images"] for row in (first, second, third)] == [
        [png, webp],
        [webp, jpg],
        [png],
    ]
    assert [row["screenshot"] for row in (first, second, third)] == [png, None, None]
    assert written.images == 7


def test_other_columns_are_unchanged(
    tmp_path: Path, configs: Mapping[str, Dataset], images: ImageStore
) -> None:
    """What is no image is written as it was: hostile text, nulls, nested values."""
    written = write_shards(tmp_path, configs["analysis"], SAMPLES, images, SHARD_BYTES)
    columns = {"input_images", "output_images", "screenshot"}
    for found, given in zip(rows_of(written.paths), configs["analysis"], strict=True):
        assert {name: found[name] for name in found if name not in columns} == {
            name: given[name] for name in given if name not in columns
        }


def test_no_rows_give_one_file_with_all_columns(
    tmp_path: Path, configs: Mapping[str, Dataset], images: ImageStore
) -> None:
    """An empty config has its file, its columns, and no row group that readers stumble on."""
    written = write_shards(tmp_path, configs["image_to_image"], SAMPLES, images, SHARD_BYTES)
    assert [path.name for path in written.paths] == ["test-00000-of-00001.parquet"]
    file = pq.ParquetFile(written.paths[0])
    assert file.schema_arrow.names == list(release_features())
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (0, 0)


def noise(seed: int, side: int) -> bytes:
    """A stored image that no packing makes smaller: three bytes a pixel."""
    pixels = random.Random(seed).randbytes(3 * side * side)
    sink = io.BytesIO()
    Image.frombytes("RGB", (side, side), pixels).save(sink, "BMP")
    return sink.getvalue()


def test_a_new_file_begins_when_one_holds_enough_bytes(
    tmp_path: Path, samples: Any, images: ImageStore
) -> None:
    """Files are cut by the bytes of rows and images, and together hold all rows in order."""
    data = noise(0, 50)
    dataset = samples(*({"output_images": [images.put(data)]} for _ in range(5)))
    written = write_shards(tmp_path, dataset, SAMPLES, images, 2 * len(data))
    names = [f"test-0000{number}-of-00003.parquet" for number in range(3)]
    assert [path.name for path in written.paths] == names
    assert [pq.ParquetFile(path).metadata.num_rows for path in written.paths] == [2, 2, 1]
    assert [row["id"] for row in rows_of(written.paths)] == [f"sample{n}" for n in range(5)]
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == names


def test_long_texts_begin_a_new_file_as_images_do(
    tmp_path: Path, samples: Any, images: ImageStore
) -> None:
    """A config without a single image is cut as well: what is held in memory is bounded."""
    dataset = samples(*({"prompt": "fox" * 10_000} for _ in range(6)))
    written = write_shards(tmp_path, dataset, SAMPLES, images, 60_000)
    assert [pq.ParquetFile(path).metadata.num_rows for path in written.paths] == [2, 2, 2]


def test_a_row_group_is_small_enough_for_the_viewer(
    tmp_path: Path, samples: Any, images: ImageStore
) -> None:
    """Row groups end long before the 300 MB at which the Hub's viewer gives up."""
    data = noise(1, 2000)
    dataset = samples(*({"output_images": [images.put(data)]} for _ in range(7)))
    metadata = pq.read_metadata(
        write_shards(tmp_path, dataset, SAMPLES, images, SHARD_BYTES).paths[0]
    )
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [3, 3, 1]
    assert max(group.total_byte_size for group in groups) < 300_000_000 / 8


def test_rows_are_written_in_the_order_of_a_selection(
    tmp_path: Path, configs: Mapping[str, Dataset], images: ImageStore
) -> None:
    """A dataset that is a selection of another one is written as selected."""
    chosen = configs["analysis"].select([2, 0])
    written = write_shards(tmp_path, chosen, SAMPLES, images, SHARD_BYTES)
    assert [row["id"] for row in rows_of(written.paths)] == ["sample2", "sample0"]


def test_many_rows_are_split_into_row_groups(
    tmp_path: Path, samples: Any, images: ImageStore
) -> None:
    """No more than a hundred rows are held and written together."""
    dataset = samples(*({"prompt": f"fox {number}"} for number in range(230)))
    metadata = pq.ParquetFile(
        write_shards(tmp_path, dataset, SAMPLES, images, SHARD_BYTES).paths[0]
    ).metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [100, 100, 30]


def test_rows_without_images_make_larger_groups(tmp_path: Path, images: ImageStore) -> None:
    """Ratings and the like are not cut into hundreds of groups of a hundred."""
    rows = [{**dict.fromkeys(RATINGS.columns), "sample_id": str(n)} for n in range(2300)]
    dataset = Dataset.from_list(rows, features=RATINGS.features)
    written = write_shards(tmp_path, dataset, RATINGS, images, SHARD_BYTES)
    metadata = pq.read_metadata(written.paths[0])
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [1000, 1000, 300]
    assert [row["sample_id"] for row in rows_of(written.paths)] == [str(n) for n in range(2300)]


def test_the_images_of_outputs_are_embedded(
    tmp_path: Path, outputs: Dataset, images: ImageStore, drawings: Mapping[str, bytes]
) -> None:
    """An output has the bytes that the system gave; one without an image stays null."""
    written = write_shards(tmp_path, outputs, OUTPUTS, images, SHARD_BYTES)
    made, refused = rows_of(written.paths)
    digest = hashlib.sha256(drawings["png"]).hexdigest()
    assert made["image"] == {"bytes": drawings["png"], "path": f"{digest}.png"}
    assert refused["image"] is None
    assert (made["outcome"], refused["outcome"]) == ("ok", "refused")
    assert written.images == 1


def test_a_missing_image_stops_the_writing(
    tmp_path: Path, samples: Any, images: ImageStore
) -> None:
    """A digest without its image is an error that names it, never an empty cell."""
    with pytest.raises(ImageError, match="0" * 64):
        write_shards(tmp_path, samples({"screenshot": "0" * 64}), SAMPLES, images, SHARD_BYTES)
