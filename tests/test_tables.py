"""The declared tables, and their columns beside the names of the paper and its official dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, Image, List, Value
from hypothesis import given
from hypothesis import strategies as st

from echo_hf import tables
from echo_hf._infra.atomic import store_rows
from echo_hf.tables import (
    OFFICIAL_DATASET,
    PAPER_PROCESSED,
    PAPER_RELEASED,
    PAPER_RETRIEVED,
    POSTS,
    TABLES,
    Table,
    arrow_batches,
    arrow_rows,
    get_rows,
    release_features,
    remap_dataset,
    take_rows,
)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_begins_with_its_key(table: Table) -> None:
    """Which key, columns and images it has is frozen in `tests/frozen`."""
    assert [*table.columns][: len(table.key)] == [*table.key] != []
    assert table.about
    assert all(table.columns[part].feature.dtype in ("string", "int64") for part in table.key)


def _leaves(feature: Any) -> list[Any]:
    if isinstance(feature, dict):
        return [feature, *(leaf for inner in feature.values() for leaf in _leaves(inner))]
    return [feature, *_leaves(feature.feature)] if isinstance(feature, List) else [feature]


def _full(feature: Any) -> Any:
    if isinstance(feature, dict):
        return {name: _full(inner) for name, inner in feature.items()}
    if isinstance(feature, List):
        return [_full(feature.feature)] * 2
    return {"string": "é", "bool": True, "float64": 0.5}.get(feature.dtype, 3)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_has_types_that_every_datasets_release_reads(table: Table, tmp_path: Path) -> None:
    for name, column in table.columns.items():
        assert {type(leaf) for leaf in _leaves(column.feature)} <= {Value, List, Image, dict}, name
        assert len(column.meaning) > 3, name
        assert "\n" not in column.meaning, name
    assert table.make_empty().schema == table.schema
    assert table.make_empty().num_rows == 0
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


# Table D.1 of the paper, upper and lower half.
RETRIEVED = "text timestamp replies_above keyword url author image_urls replies_below engagement"
PROCESSED = (
    "id post_id prompt prompt_modified quality community_feedback input_images output_images "
    "is_screenshot input_bboxs output_bboxs"
)
# What the authors' code prints, or reads, of each configuration of their dataset.
OFFICIAL = {
    "text_to_image": "id prompt prompt_modified prompt_fill_blank input_images output_images "
    "community_feedback has_nsfw",
    "analysis": "id prompt prompt_modified quality community_feedback",
    "image_to_image": "id prompt input_images is_screenshot input_bboxs",
}


def _resolved(path: str) -> Any:
    table, *names = path.split(".")
    feature: Any = TABLES[table].features
    for name in names:
        feature = feature.feature[name] if isinstance(feature, List) else feature[name]
    return feature.feature if isinstance(feature, List) else feature


def test_every_field_of_the_paper_has_a_column() -> None:
    """Those that are processed under the paper's own names."""
    assert " ".join(PAPER_RETRIEVED) == RETRIEVED
    assert {name: f"samples.{name}" for name in PROCESSED.split()} == PAPER_PROCESSED
    assert all(_resolved(path) for path in (*PAPER_RETRIEVED.values(), *PAPER_PROCESSED.values()))
    assert {"likes", "views", "reposts", "bookmarks"} <= set(_resolved("posts.engagement"))
    assert PAPER_RELEASED.keys() <= PAPER_RETRIEVED.keys()
    for name in ("timestamp", "keyword", "engagement"):
        assert _resolved(PAPER_RELEASED[name]) == _resolved(PAPER_RETRIEVED[name])
    assert {"url", "alt_text"} <= set(_resolved("posts.pictures"))
    assert {"post_id", "feedback"} <= set(_resolved("samples.community_feedback"))


def test_a_release_is_a_superset_of_the_official_dataset() -> None:
    assert {name: " ".join(columns) for name, columns in OFFICIAL_DATASET.items()} == OFFICIAL
    assert {column for columns in OFFICIAL_DATASET.values() for column in columns} <= set(
        release_features()
    )


ROWS = pa.table(
    {
        "number": pa.chunked_array([list(range(start, start + 7)) for start in range(0, 70, 7)]),
        "words": pa.chunked_array([[["a"] * (n % 3) for n in range(70)]]),
    }
)


@given(st.lists(st.integers(0, 69)))
def test_rows_are_taken_in_any_order(numbers: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "ROWS_PER_TAKE", 10)
        found = take_rows(ROWS, np.array(numbers, np.int64))

    assert found["number"].to_pylist() == numbers
    assert [len(words) for words in found["words"].to_pylist()] == [n % 3 for n in numbers]


@pytest.mark.parametrize("chosen", [None, range(20, 60), [5, 3, 69, 3, 40]])
def test_batches_are_the_rows_of_a_dataset_in_order(chosen: Sequence[int] | None) -> None:
    dataset = Dataset(ROWS) if chosen is None else Dataset(ROWS).select(chosen)
    expected = list(range(70)) if chosen is None else list(chosen)
    batches = list(arrow_batches(dataset, 8, ["number"]))

    assert arrow_rows(dataset)["number"].to_pylist() == expected
    assert [n for batch in batches for n in batch["number"].to_pylist()] == expected
    assert {len(batch) for batch in batches[:-1]} <= {8}
    assert get_rows(dataset, np.array([2, 0, 4]))["number"].to_pylist() == [
        expected[at] for at in (2, 0, 4)
    ]


def test_rows_mapped_anew_are_the_same(tmp_path: Path) -> None:
    kept = store_rows([ROWS[:50], ROWS[50:]], ROWS.schema, tmp_path / "rows.arrow")
    dataset = Dataset(kept, fingerprint="rows").select([4, 2])
    again = remap_dataset(dataset)

    assert again.to_list() == [{"number": 4, "words": ["a"]}, {"number": 2, "words": ["a"] * 2}]
    assert again._fingerprint == dataset._fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]
