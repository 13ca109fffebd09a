"""The declared tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset, Image, List, Value

from echo_hf.tables import POSTS, SAMPLES, TABLES, Table, release_features

# Names and keys as the project's design lists them.
DECLARED = {
    "posts": (
        "url",
        "url post_id platform author text timestamp lang keywords pictures parent_url quoted_url "
        "engagement missing relevance",
    ),
    "threads": ("root_url", "root_url posts"),
    "samples": (
        "id",
        "id post_id post_urls author target prompt prompt_sha256 prompt_spans prompt_modified "
        "prompt_fill_blank quality community_feedback input_images output_images screenshot "
        "is_screenshot input_bboxs output_bboxs picture_sources has_nsfw safety review kind task "
        "sample_digest dehydrated provenance",
    ),
    "outputs": (
        "sample_id system",
        "sample_id system sample_digest image outcome stage code text seed revised_prompt "
        "model_reported latency_s usage cost_usd provenance",
    ),
    "ratings": (
        "sample_id system judge rubric repeat",
        "sample_id system judge rubric repeat sample_digest output_sha256 prompt_digest rating "
        "explanation outcome usage cost_usd provenance",
    ),
    "comparisons": (
        "sample_id system_a system_b judge order repeat",
        "sample_id system_a system_b judge order repeat sample_digest output_a_sha256 "
        "output_b_sha256 prompt_digest winner explanation outcome usage cost_usd provenance",
    ),
    "applicability": (
        "sample_id",
        "sample_id face_identity color_shift structure_distance text_rendering rationale outcome",
    ),
    "human": ("sample_id rater system", "sample_id rater system rank cannot_rank"),
    "results": (
        "metric protocol split system",
        "metric protocol split system value low high n coverage definition",
    ),
    "responses": ("request_key", "request_key task text finish_reason usage sources"),
}
TYPES = (Value, List, Image, dict)


def _leaves(feature: Any) -> list[Any]:
    if isinstance(feature, dict):
        return [feature, *(leaf for inner in feature.values() for leaf in _leaves(inner))]
    return [feature, *_leaves(feature.feature)] if isinstance(feature, List) else [feature]


def _full(feature: Any) -> Any:
    if isinstance(feature, dict):
        return {name: _full(inner) for name, inner in feature.items()}
    if isinstance(feature, List):
        return [_full(feature.feature)] * 2
    values = {"string": "é", "bool": True, "float64": 0.5}
    return values.get(feature.dtype, 3)


def test_the_tables_are_those_of_the_design() -> None:
    assert {
        name: (" ".join(table.key), " ".join(table.columns)) for name, table in TABLES.items()
    } == DECLARED


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_key_is_made_of_plain_columns(table: Table) -> None:
    assert table.key
    for name in table.key:
        assert table.columns[name].feature in (Value("string"), Value("int64"))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_column_says_what_it_means(table: Table) -> None:
    assert table.about
    for name, column in table.columns.items():
        assert len(column.meaning) > 3, name
        assert "\n" not in column.meaning, name


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_only_types_that_every_datasets_release_reads(table: Table) -> None:
    for name, column in table.columns.items():
        assert {type(leaf) for leaf in _leaves(column.feature)} <= set(TYPES), name


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_empty_table_has_all_its_columns(table: Table) -> None:
    empty = table.empty()
    assert empty.num_rows == 0
    assert empty.schema == table.schema
    assert empty.column_names == list(table.columns)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_survives_parquet(table: Table, tmp_path: Path) -> None:
    full = {name: _full(column.feature) for name, column in table.columns.items()}
    rows = [full, dict.fromkeys(table.columns)]
    written = pa.Table.from_pylist(rows, schema=table.features.arrow_schema)
    Dataset(written).to_parquet(tmp_path / "t.parquet")
    read = Dataset.from_parquet(str(tmp_path / "t.parquet"), cache_dir=str(tmp_path))
    assert read.features == table.features
    assert read.with_format("arrow")[:].to_pylist() == written.to_pylist()


def test_counts_that_a_platform_does_not_give_are_null() -> None:
    """A missing count is null and stays null: it is never read back as 0."""
    row = {"url": "u", "engagement": {"likes": 0}}
    table = pa.Table.from_pylist([row], schema=POSTS.schema)
    assert table["engagement"].to_pylist() == [
        {"likes": 0, "views": None, "reposts": None, "replies": None, "bookmarks": None}
    ]


def test_a_release_holds_images_where_a_run_holds_digests() -> None:
    released = release_features()
    images = {"input_images", "output_images", "screenshot"}
    assert list(released) == list(SAMPLES.features)
    assert {name for name in released if released[name] != SAMPLES.features[name]} == images
    assert released["screenshot"] == Image()
    assert released["input_images"] == released["output_images"] == List(Image())
    assert {name: table.images for name, table in TABLES.items() if table.images} == {
        "samples": ("input_images", "output_images", "screenshot"),
        "outputs": ("image",),
    }
