"""Collecting from lines and from files, as the tests of all sources do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import RECORDS, read_records
from echo_hf.collect.sources.base import make_source
from echo_hf.config.sections import Posts
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
        records = read_records([Posts(source=source, path=path, keywords=keywords)])
        read = run_stage(collect, records)
        return run_stage(Merge(), read.dataset).dataset.to_list(), read

    return run


@pytest.fixture
def server() -> Iterator[ImageServer]:
    with ImageServer() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "run" / "pictures")
