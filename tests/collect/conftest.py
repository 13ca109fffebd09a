"""Collecting from lines and from files, and reading one document, as the tests of sources do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.records import RECORDS, read_records
from echo_hf.collect.sources.base import make_source
from echo_hf.config.sections import PostsSource
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from tests.collect.loopback import ImageServer
from tests.collect.platforms.crawling import serve  # noqa: F401 - a fixture

RecordTable = Callable[..., pa.Table]
CollectLines = Callable[..., list[dict[str, Any]]]
CollectFile = Callable[..., tuple[list[dict[str, Any]], StageResult]]


@pytest.fixture(scope="session")
def collect(tmp_path_factory: pytest.TempPathFactory) -> Collect:
    return Collect(ImageStore(tmp_path_factory.mktemp("pictures")))


def _record_table(
    source: str, lines: Iterable[str], keywords: Sequence[str] = (), folder: Path | None = None
) -> pa.Table:
    where = str(folder or Path("no such folder"))
    rows = [
        {"place": f"f{place}", "source": source, "folder": where, "record": record}
        for place, record in make_source(source).split(lines)
    ]
    full = [{**row, "keywords": list(keywords)} for row in rows]
    return pa.Table.from_pylist(full, schema=RECORDS.schema)


@pytest.fixture(scope="session")
def record_table() -> RecordTable:
    return _record_table


@pytest.fixture(scope="session")
def collect_lines(collect: Collect) -> CollectLines:
    def run(*arguments: Any, **named: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = collect(_record_table(*arguments, **named)).to_pylist()
        return rows

    return run


@pytest.fixture
def collect_file(collect: Collect) -> CollectFile:
    def run(source: str, path: Path, *keywords: str) -> tuple[list[dict[str, Any]], StageResult]:
        records = read_records([PostsSource(source=source, path=path, keywords=keywords)])
        read = run_stage(collect, records)
        return run_stage(PostMerge(), read.dataset).dataset.to_list(), read

    return run


@pytest.fixture
def server() -> Iterator[ImageServer]:
    with ImageServer() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "run" / "pictures")


Json = dict[str, Any]
# By the end of its address the columns of each post, and place and reason of every remark.
Case = tuple[Any, dict[str, Json], list[str]]
Reads = Callable[..., None]
Real = Callable[[str], Path]


def shown(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [(one["url"], one["alt_text"]) for one in value]
    return value


@pytest.fixture(scope="session")
def reads(collect_lines: Callable[..., list[Json]]) -> Reads:
    def check(
        source: str,
        document: Any,
        posts: Mapping[str, Json],
        said: Sequence[str] = (),
        keywords: Sequence[str] = ("fox",),
    ) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        rows = collect_lines(source, text.splitlines() or [text], keywords)
        kept = {row["url"].rpartition("/")[2]: row for row in rows if row["_status"] == "kept"}
        found = {
            name: {column: shown(row[column]) for column in posts.get(name, ())}
            for name, row in kept.items()
        }
        remarks = [
            f"{row['_parent'][0].removeprefix('f:1')} {row['_reason']}".strip()
            for row in rows
            if row["_status"] != "kept"
        ]
        assert (found, remarks) == (dict(posts), list(said))

    return check


@pytest.fixture
def real(test_data: Path) -> Real:
    def find(name: str) -> Path:
        file = test_data / "posts" / name
        if not file.exists():
            pytest.skip(f"no file {str(file)!r}")
        return file

    return find
