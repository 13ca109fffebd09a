"""Rows with digests become Parquet files with the pictures themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features

from echo_hf.errors import PictureError
from echo_hf.hub.shards import SHARD_BYTES, released_schema, write_shards
from echo_hf.pictures import PictureStore
from echo_hf.tables import release_features


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    """The rows of some Parquet files, as pyarrow reads them."""
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_every_picture_keeps_its_bytes_and_is_named_by_digest_and_format(
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    pictures: PictureStore,
    drawings: Mapping[str, bytes],
) -> None:
    """A picture is embedded as the bytes that were stored, whichever column it is in."""
    written = write_shards(tmp_path, configs["analysis"], pictures, SHARD_BYTES)
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
    assert written.pictures == 7


def test_other_columns_are_unchanged(
    tmp_path: Path, configs: Mapping[str, Dataset], pictures: PictureStore
) -> None:
    """What is no picture is written as it was: hostile text, nulls, nested values."""
    written = write_shards(tmp_path, configs["analysis"], pictures, SHARD_BYTES)
    images = {"input_images", "output_images", "screenshot"}
    for found, given in zip(rows_of(written.paths), configs["analysis"], strict=True):
        assert {name: found[name] for name in found if name not in images} == {
            name: given[name] for name in given if name not in images
        }


def test_no_rows_give_one_file_with_all_columns(
    tmp_path: Path, configs: Mapping[str, Dataset], pictures: PictureStore
) -> None:
    """An empty config has its file, its columns, and no row group that readers stumble on."""
    written = write_shards(tmp_path, configs["image_to_image"], pictures, SHARD_BYTES)
    assert [path.name for path in written.paths] == ["test-00000-of-00001.parquet"]
    file = pq.ParquetFile(written.paths[0])
    assert file.schema_arrow.names == list(release_features())
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (0, 0)


def test_a_new_file_begins_when_one_holds_enough_bytes_of_pictures(
    tmp_path: Path, samples: Any, pictures: PictureStore, drawings: Mapping[str, bytes]
) -> None:
    """Files are cut by bytes of pictures, and together hold all rows in their order."""
    png = drawings["png"]
    digest = hashlib.sha256(png).hexdigest()
    dataset = samples(*({"output_images": [digest]} for _ in range(5)))
    written = write_shards(tmp_path, dataset, pictures, 2 * len(png))
    names = [f"test-0000{number}-of-00003.parquet" for number in range(3)]
    assert [path.name for path in written.paths] == names
    assert [pq.ParquetFile(path).metadata.num_rows for path in written.paths] == [2, 2, 1]
    assert [row["id"] for row in rows_of(written.paths)] == [f"sample{n}" for n in range(5)]
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == names


def test_rows_are_written_in_the_order_of_a_selection(
    tmp_path: Path, configs: Mapping[str, Dataset], pictures: PictureStore
) -> None:
    """A dataset that is a selection of another one is written as selected."""
    chosen = configs["analysis"].select([2, 0])
    written = write_shards(tmp_path, chosen, pictures, SHARD_BYTES)
    assert [row["id"] for row in rows_of(written.paths)] == ["sample2", "sample0"]


def test_many_rows_are_split_into_row_groups(
    tmp_path: Path, samples: Any, pictures: PictureStore
) -> None:
    """No more than a hundred rows are held and written together."""
    dataset = samples(*({"prompt": f"fox {number}"} for number in range(230)))
    metadata = pq.ParquetFile(
        write_shards(tmp_path, dataset, pictures, SHARD_BYTES).paths[0]
    ).metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert groups == [100, 100, 30]


def test_a_missing_picture_stops_the_writing(
    tmp_path: Path, samples: Any, pictures: PictureStore
) -> None:
    """A digest without its picture is an error that names it, never an empty cell."""
    with pytest.raises(PictureError, match="0" * 64):
        write_shards(tmp_path, samples({"screenshot": "0" * 64}), pictures, SHARD_BYTES)


def test_the_schema_carries_the_released_features() -> None:
    """The features of a release are read back by datasets from the schema alone."""
    assert Features.from_arrow_schema(released_schema()) == release_features()


def test_the_schema_names_no_feature_that_old_datasets_lacks() -> None:
    """The features are written without `List`, which datasets 3.x does not know."""
    metadata = released_schema().metadata[b"huggingface"]
    features = json.loads(metadata)["info"]["features"]
    assert features["output_images"] == [{"_type": "Image"}]
    assert features["input_bboxs"] == [[{"dtype": "float64", "_type": "Value"}]]
    assert features["safety"]["categories"] == [{"dtype": "string", "_type": "Value"}]
    assert b'"List"' not in metadata
