"""The Parquet files of a release suit the Hub, and every version of datasets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features

from echo_hf.hub.facts import CONFIGS
from echo_hf.hub.parquet import (
    SHARD_BYTES,
    leaves,
    released_schema,
    without_images,
    write_shards,
    writer,
)
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, SAMPLES, Table

TABLES = {config.table.name: config.table for config in CONFIGS.values()}
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@pytest.fixture
def written(tmp_path: Path, configs: Mapping[str, Dataset], images: ImageStore) -> pq.FileMetaData:
    """What the file of a config with images says of itself."""
    paths = write_shards(tmp_path, configs["analysis"], SAMPLES, images, SHARD_BYTES).paths
    return pq.read_metadata(paths[0])


def columns(metadata: pq.FileMetaData) -> dict[str, Any]:
    """The column chunks of the first row group by the path of their leaf."""
    group = metadata.row_group(0)
    every = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema: column for column in every}


@each_table
def test_the_schema_carries_the_released_features(table: Table) -> None:
    """The features of a release are read back by datasets from the schema alone."""
    assert Features.from_arrow_schema(released_schema(table)) == table.released_features


@each_table
def test_the_schema_names_no_feature_that_old_datasets_lacks(table: Table) -> None:
    """The features are written without `List`, which datasets 3.x does not know."""
    assert b'"List"' not in released_schema(table).metadata[b"huggingface"]


def test_lists_are_written_as_old_datasets_wrote_them() -> None:
    """A list is its only element in brackets, at every depth."""
    metadata = released_schema(SAMPLES).metadata[b"huggingface"]
    features = json.loads(metadata)["info"]["features"]
    assert features["output_images"] == [{"_type": "Image"}]
    assert features["input_bboxs"] == [[{"dtype": "float64", "_type": "Value"}]]
    assert features["safety"]["categories"] == [{"dtype": "string", "_type": "Value"}]


def test_every_column_has_a_page_index(written: pq.FileMetaData) -> None:
    """The viewer can read the pages that it shows, without the rest of the row group."""
    for column in columns(written).values():
        assert column.has_offset_index, column.path_in_schema
        assert column.has_column_index, column.path_in_schema


def test_images_are_not_packed_again(written: pq.FileMetaData) -> None:
    """Packed bytes are stored plainly, without a dictionary; all other columns are packed."""
    chunks = columns(written)
    stored = {name for name, column in chunks.items() if column.compression == "UNCOMPRESSED"}
    assert stored == {
        "input_images.list.element.bytes",
        "output_images.list.element.bytes",
        "screenshot.bytes",
    }
    for name in stored:
        assert not {"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & set(chunks[name].encodings)
    assert chunks["prompt"].compression == "ZSTD"


@each_table
def test_the_leaves_are_those_that_parquet_names(table: Table, tmp_path: Path) -> None:
    """The paths are what Parquet itself calls its columns."""
    schema = released_schema(table)
    with writer(tmp_path / "t.parquet", schema) as file:
        file.write_table(schema.empty_table())
    named = pq.ParquetFile(tmp_path / "t.parquet").schema
    assert list(leaves(schema)) == [named.column(n).path for n in range(len(named))]


def test_only_the_bytes_of_images_are_left_aside() -> None:
    """What is read without images is every leaf but their bytes."""
    schema = released_schema(OUTPUTS)
    assert set(leaves(schema)) - set(without_images(schema)) == {"image.bytes"}
